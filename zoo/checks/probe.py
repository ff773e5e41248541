"""Random weights that reveal the wiring of a model, whatever its recipe for initialisation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import lru_cache

import torch
from torch import Tensor, nn

from specs.kinds.block import BlockParts
from specs.kinds.norm import Affine
from specs.model.model import Model
from zoo.components.attention import Projections
from zoo.core.initialization import distributions, fans
from zoo.core.tensors import fixed_values, weight_tensors
from zoo.weights.source import WeightSource

_POOL = 2**20 - 3  # a prime, so that no two rows of a matrix are the same stretch of the pool


class ProbeWeights(WeightSource):
    """Weights under which signals neither fade nor swamp each other, in float64.

    Matrices preserve variance, attention scores have a standard deviation of 1, and biases, the weights of norms and
    fixed values are scattered around their initial values, so that each shows.
    """

    def __init__(self, model: nn.Module, spec: Model, seed: int = 0) -> None:
        self.description = f"random, drawn for checking with seed {seed}"
        self.seed = seed
        self._modules = dict(model.named_modules())
        self._tensors = dict(weight_tensors(model))
        self._fixed = fixed_values(model)
        self._recipe = distributions(model, spec)
        self._gain = (
            0.3 if any(_grows(block) for _, stack in spec.stacks() for block in stack.layer_blocks()) else 1.0
        )
        self._pool = _pool(seed)

    def pieces(self, name: str) -> Iterator[Tensor]:
        tensor = self._tensors[name]
        shape, constant = tensor.shape, self._recipe[name].constant
        if name in self._fixed:
            yield self._draw(name, shape.numel(), 0.1).add_(self._fixed[name].reshape(-1))
        elif (values := self._recipe[name].values) is not None:
            yield self._draw(name, shape.numel(), 0.1).add_(values.reshape(-1))
        elif len(shape) < 2 or constant is not None:
            yield self._draw(name, shape.numel(), 0.1).add_(constant or 0.0)
        else:
            yield self._draw(name, shape.numel(), self._std(name, tensor))

    def _draw(self, name: str, count: int, std: float) -> Tensor:
        start = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little") % _POOL
        values = torch.empty(count, dtype=torch.float64)
        end = 0
        while end < count:
            piece = self._pool[start : start + count - end]
            torch.mul(piece, std, out=values[end : end + len(piece)])
            start, end = 0, end + len(piece)
        return values

    def _std(self, name: str, tensor: Tensor) -> float:
        path = name.rpartition(".")[0]
        if isinstance(self._modules[path], nn.Embedding):
            return 1.0
        around, _, role = path.rpartition(".")
        attention = self._modules[around]
        std = self._gain / fans(self._modules[path], tensor)[0] ** 0.5
        if role == "query" and isinstance(attention, Projections):
            std /= attention.scale * attention.width**0.5
        return std


@lru_cache(
    maxsize=4
)  # as many as the draws of one check; drawing one takes longer than the checks of a tiny model
def _pool(seed: int) -> Tensor:
    """Return the normal values that the weights of a seed are cut from, which nobody may change."""
    return torch.randn(_POOL, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def _grows(block: BlockParts) -> bool:
    """Whether a block adds to a residual stream that is never normalised."""
    adds = any(not block.residual_of(branch).is_none for branch in block.branches())
    return adds and any(norm.is_none or isinstance(norm, Affine) for norm in block.norms_used())
