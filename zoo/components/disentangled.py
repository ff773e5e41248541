"""The position of disentangled attention (DeBERTa: He et al., 2020).

Shapes: batch B, query length T, key length S, width D, heads H, key-value heads G, head width K, buckets on either side R.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import specs.kinds.disentangled as spec
from zoo import functional
from zoo.components.attention import KEY_BIASES, split_heads
from zoo.components.compared_position import ComparedPosition, Distances, ProjectsVectors, head_products
from zoo.components.linear import EmbeddingTable, Linear
from zoo.components.position import Position
from zoo.context import PositionContext
from zoo.core.sharding import COLUMNS, Sharding
from zoo.registry import build_component, builds


def deberta_rows(buckets: int, max_distance: int) -> tuple[int, ...]:
    """The row of each relative position (key minus query) from max_distance down to -max_distance, of 2 * buckets rows.

    Near distances have a bucket each; far ones share buckets of logarithmic width (transformers'
    ``make_log_bucket_position``; computed once in float32 as there, so that every runtime agrees).
    """
    relative = torch.arange(-max_distance, max_distance + 1, device="cpu")  # query minus key
    exact, distance = buckets // 2, relative.abs()
    furthest = torch.tensor((max_distance - 1) / exact, device="cpu")
    far = torch.log(distance.clamp(min=exact) / exact) / torch.log(furthest)
    far = (torch.ceil(far * (exact - 1)) + exact) * relative.sign()
    bucket = torch.where(distance <= exact, relative, far.to(torch.int64))
    rows: list[int] = (bucket + buckets).clamp(0, 2 * buckets - 1).tolist()
    return tuple(rows[::-1])


@builds(spec.Disentangled)
class Disentangled(ComparedPosition):
    """A trained vector per distance bucket, 2R in all, the keys furthest ahead first, and perhaps projections of them, H K each."""

    def __init__(self, spec: spec.Disentangled, context: PositionContext) -> None:
        super().__init__(spec, context)
        self.per_side, self.max_distance = spec.per_side, spec.max_distance
        self.rows = None if spec.buckets is None else deberta_rows(spec.buckets, spec.max_distance)
        self.to_position = spec.terms != "position_to_content"
        self.to_content = spec.terms != "content_to_position"
        self.table = EmbeddingTable(2 * self.per_side, context.d_model)
        self.norm = nn.Identity() if spec.norm is None else build_component(spec.norm, context)
        self.dropout = nn.Dropout(spec.dropout)
        self.query: Linear | None = None
        self.key: Linear | None = None
        if spec.projections == "shared":
            return
        assert context.heads is not None
        assert context.head_width is not None
        self.heads, self.head_width = context.heads, context.head_width
        if self.to_content:
            self.query = Linear(context.d_model, self.heads * self.head_width, bias=True)
        if self.to_position:
            self.key = Linear(context.d_model, self.heads * self.head_width, bias=False)

    def share(self, first: Position) -> None:
        assert isinstance(first, Disentangled)
        self.name, self.table, self.norm = first.name, first.table, first.norm

    def sharding(self) -> Sharding:
        """By heads, where the vectors have projections of their own."""
        own = self.query is not None or self.key is not None
        return Sharding({"query": COLUMNS, "key": COLUMNS}, {"heads": self.heads} if own else {})

    def without_gradient(self) -> dict[str, str]:
        """The bias of a norm of distances that stand for keys alone."""
        return {} if self.to_content else {"norm.bias": KEY_BIASES}

    def distances(self, queries: Tensor, keys: Tensor, like: Tensor) -> Distances:
        return Distances(self.norm(self.table.weight), self.rows_of(queries, keys))

    def rows_of(self, queries: Tensor, keys: Tensor) -> Tensor:
        """The row of each query and key: their positions, (B or 1) T and (B or 1) S -> (B or 1) T S."""
        relative = functional.relative_positions(queries, keys)
        if self.rows is None:
            return (self.per_side - relative).clamp(0, 2 * self.per_side - 1)
        reach = relative.clamp(-self.max_distance, self.max_distance) + self.max_distance
        return F.embedding(reach, functional.constant(self.rows, keys)[:, None])[..., 0]

    def compare(self, attention: ProjectsVectors, query: Tensor, key: Tensor, distances: Distances) -> Tensor:
        """scale * (query . key of the distance + key . query of the distance): B H T K and B G S K -> B H T S."""
        vectors = self.dropout(distances.vectors)[None]  # 1 2R D
        rows = distances.rows[:, None].expand(query.shape[0], query.shape[1], -1, -1)  # B H T S
        terms = []
        if self.to_position:
            keys = (
                attention.keys(vectors)
                if self.key is None
                else split_heads(self.key(vectors), self.head_width)
            )
            products = head_products(query, attention.scale * keys)  # B H T 2R
            terms.append(products.gather(-1, rows))
        if self.to_content:
            queries = (
                attention.queries(vectors)
                if self.query is None
                else split_heads(self.query(vectors), self.head_width)
            )
            products = head_products(attention.scale * queries, key)  # B H 2R S
            terms.append(products.gather(2, rows))
        return terms[0] if len(terms) == 1 else terms[0] + terms[1]
