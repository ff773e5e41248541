"""Random weights: a function of seed and parameter name, so the same wherever and in whatever order they are drawn."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from specs.model import Model
from zoo.initialization import distributions

PIECE = 2**22
"""Values per piece; part of the definition of the numbers drawn."""


class RandomWeights:
    """Weights drawn by the spec's recipe."""

    def __init__(
        self, model: nn.Module, spec: Model, seed: int = 0, dtype: torch.dtype = torch.float32
    ) -> None:
        self.description = f"random, seed {seed}"
        self.seed = seed
        self.dtype = dtype
        self._distributions = distributions(model, spec)
        self._sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}

    def pieces(self, name: str) -> Iterator[Tensor]:
        digest = hashlib.sha256(f"{self.seed}/{name}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "little", signed=True))
        for start in range(0, self._sizes[name], PIECE):
            piece = torch.empty(min(PIECE, self._sizes[name] - start), dtype=torch.float32)
            self._distributions[name].fill(piece, generator)
            yield piece.to(self.dtype)

    def raw(self, name: str) -> None:
        """Nowhere."""
