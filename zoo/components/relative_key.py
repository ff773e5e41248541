"""The position of Shaw et al. (2018).

Shapes: batch B, query length T, key length S, heads H, key-value heads G, head width K, distances R.
"""

from __future__ import annotations

from torch import Tensor

import specs.kinds.relative_key as spec
from zoo import functional
from zoo.components.compared_position import ComparedPosition, Distances, ProjectsVectors
from zoo.components.linear import EmbeddingTable
from zoo.context import PositionContext
from zoo.core.sharding import SHARED, Sharding
from zoo.registry import builds


@builds(spec.RelativeKey)
class RelativeKey(ComparedPosition):
    """A trained vector per distance, R K, the keys furthest before the query first."""

    def __init__(self, spec: spec.RelativeKey, context: PositionContext) -> None:
        super().__init__(spec, context)
        assert context.head_width is not None
        self.before, self.after = spec.before, spec.after
        self.table = EmbeddingTable(spec.before + spec.after + 1, context.head_width)

    def sharding(self) -> Sharding:
        """Vectors that all heads compare with."""
        return Sharding({"table": SHARED})

    def distances(self, queries: Tensor, keys: Tensor, like: Tensor) -> Distances:
        relative = functional.relative_positions(queries, keys)  # (B or 1) T S
        return Distances(self.table.weight, relative.clamp(-self.before, self.after) + self.before)

    def compare(self, attention: ProjectsVectors, query: Tensor, key: Tensor, distances: Distances) -> Tensor:
        """scale * query . vector of the distance: B H T K and B G S K -> B H T S."""
        products = (attention.scale * query) @ self.table.weight.transpose(0, 1)  # B H T R
        rows = distances.rows[:, None].expand(query.shape[0], query.shape[1], -1, -1)  # B H T S
        return products.gather(-1, rows)
