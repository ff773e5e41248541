"""Random weights: a function of seed and parameter name, independent of machine and order."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from specs.model.model import Model
from zoo.core.initialization import distributions
from zoo.core.tensors import fixed_values, weight_tensors
from zoo.weights.memory_pages import in_own_pages
from zoo.weights.source import WeightSource

PIECE = 2**22
"""Values per piece, which is part of the definition of the numbers drawn."""


class RandomWeights(WeightSource):
    """Weights drawn by the spec's recipe, except fixed values."""

    def __init__(
        self, model: nn.Module, spec: Model, seed: int = 0, dtype: torch.dtype = torch.float32
    ) -> None:
        self.description = f"random, seed {seed}"
        self.seed = seed
        self.dtype = dtype
        self._distributions = distributions(model, spec)
        self._fixed = fixed_values(model)
        self._sizes = {name: tensor.numel() for name, tensor in weight_tensors(model)}

    def pieces(self, name: str) -> Iterator[Tensor]:
        if name in self._fixed:
            yield self._fixed[name].reshape(-1).to(self.dtype)
            return
        draw = self._drawing(name)
        for start in range(0, self._sizes[name], PIECE):
            piece = torch.empty(min(PIECE, self._sizes[name] - start), dtype=torch.float32)
            draw(piece)
            yield piece.to(self.dtype)

    def whole(self, name: str, parameter: Tensor) -> Tensor:
        """As ``pieces``, drawn in place where possible: no other copy is held beside the whole."""
        if name in self._fixed or {self.dtype, parameter.dtype} != {torch.float32}:
            return super().whole(name, parameter)
        values, draw = in_own_pages(parameter.shape, torch.float32), self._drawing(name)
        for piece in values.view(-1).split(PIECE):
            draw(piece)
        return values

    def _drawing(self, name: str) -> Callable[[Tensor], None]:
        """A function that fills consecutive flat pieces of a parameter, in float32."""
        digest = hashlib.sha256(f"{self.seed}/{name}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "little", signed=True))
        return lambda piece: self._distributions[name].fill(piece, generator)
