"""Trained biases of scores by relative position."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

import specs.kinds.relative_bias as spec
from zoo import functional
from zoo.components.linear import EmbeddingTable
from zoo.components.position import Position
from zoo.context import PositionContext
from zoo.core.sharding import COLUMNS, Sharding
from zoo.registry import builds


def t5_buckets(buckets: int, max_distance: int, *, bidirectional: bool) -> tuple[int, ...]:
    """The bucket of each relative position (key minus query) from -max_distance to max_distance.

    Near distances have a bucket each; far ones share buckets of logarithmic width (transformers'
    ``T5Attention._relative_position_bucket``; computed once in float32 as there, so that every runtime agrees).
    """
    relative = torch.arange(-max_distance, max_distance + 1, device="cpu")
    sides = buckets // 2 if bidirectional else buckets
    base = (relative > 0) * sides if bidirectional else torch.zeros_like(relative)
    distance = relative.abs() if bidirectional else (-relative).clamp(min=0)
    exact = sides // 2
    far = torch.log(distance.float() / exact) / math.log(max_distance / exact) * (sides - exact)
    far = (exact + far.clamp(min=0).to(torch.int64)).clamp(max=sides - 1)
    bucket: list[int] = (base + torch.where(distance < exact, distance, far)).tolist()
    return tuple(bucket)


@builds(spec.RelativeBias)
class RelativeBias(Position):
    """A trained bias per distance bucket and head."""

    def __init__(self, spec: spec.RelativeBias, context: PositionContext) -> None:
        super().__init__(spec, context)
        self.max_distance = spec.max_distance
        self.buckets = t5_buckets(spec.buckets, spec.max_distance, bidirectional=not context.causal)
        assert context.heads is not None
        self.table = EmbeddingTable(spec.buckets, context.heads)

    def sharding(self) -> Sharding:
        """By heads."""
        return Sharding({"table": COLUMNS}, {"heads": self.table.embedding_dim})

    def bias(self, queries: Tensor, keys: Tensor, like: Tensor) -> Tensor | None:
        return self.looked_up(self.table, queries, keys, like)

    def looked_up(self, table: nn.Embedding, queries: Tensor, keys: Tensor, like: Tensor) -> Tensor:
        """The biases in a table of buckets: (B or 1) T and (B or 1) S -> (B or 1) H T S."""
        relative = functional.relative_positions(queries, keys)  # (B or 1) T S
        reach = relative.clamp(-self.max_distance, self.max_distance) + self.max_distance
        by_distance = table(functional.constant(self.buckets, like))  # (2 max_distance + 1) H
        return nn.functional.embedding(reach, by_distance).permute(0, 3, 1, 2)  # (B or 1) H T S
