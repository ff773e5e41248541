"""Random weights: a function of seed and parameter name, independent of machine and order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from specs.model.model import Model
from zoo.core.initialization import distributions
from zoo.core.tensors import fixed_values, weight_tensors
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
        digest = hashlib.sha256(f"{self.seed}/{name}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "little", signed=True))
        for start in range(0, self._sizes[name], PIECE):
            piece = torch.empty(min(PIECE, self._sizes[name] - start), dtype=torch.float32)
            self._distributions[name].fill(piece, generator)
            yield piece.to(self.dtype)
