"""The position of Transformer-XL (Dai et al., 2019).

Shapes: batch B, query length T, key length S, width D, heads H, key-value heads G, head width K, distances R = 2 S - 1.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import specs.kinds.relative_sinusoidal as spec
from zoo import functional
from zoo.components.compared_position import ComparedPosition, Distances, ProjectsVectors, head_products
from zoo.components.linear import Linear
from zoo.components.sinusoidal import sines_and_cosines
from zoo.context import PositionContext
from zoo.core.initialization import Distribution
from zoo.core.sharding import COLUMNS, HEADS, Sharding
from zoo.registry import builds


@builds(spec.RelativeSinusoidal)
class RelativeSinusoidal(ComparedPosition):
    """The projection of the sinusoids of distances, and the vectors that a layer adds to its queries, H K each."""

    def __init__(self, spec: spec.RelativeSinusoidal, context: PositionContext) -> None:
        super().__init__(spec, context)
        assert context.heads is not None
        assert context.head_width is not None
        half = context.d_model // 2
        heads, self.width = context.heads, context.head_width
        self.frequencies = tuple(spec.base ** (-i / half) for i in range(half))
        self.projection = Linear(context.d_model, heads * self.width, bias=False)
        self.content_bias = nn.Parameter(torch.empty(heads, self.width))
        self.distance_bias = nn.Parameter(torch.empty(heads, self.width))
        self.dropout = nn.Dropout(spec.dropout)

    def initial(self, leaf: str) -> Distribution:
        """Nothing is added to queries."""
        return Distribution(constant=0.0)

    def sharding(self) -> Sharding:
        """By heads."""
        cuts = {"projection": COLUMNS, "content_bias": HEADS, "distance_bias": HEADS}
        return Sharding(cuts, {"heads": len(self.content_bias)})

    def distances(self, queries: Tensor, keys: Tensor, like: Tensor) -> Distances:
        length = keys.shape[-1]
        distances = functional.positions_from(0, 2 * length - 1, like)[None] - (length - 1)  # 1 R
        vectors = sines_and_cosines(functional.angles(distances, self.frequencies), interleaved=True)[
            0
        ]  # R D
        rows = (length - 1) - functional.relative_positions(queries, keys)  # (B or 1) T S
        return Distances(vectors.to(like.dtype), rows)

    def compare(self, attention: ProjectsVectors, query: Tensor, key: Tensor, distances: Distances) -> Tensor:
        """scale * (u . key + (query + v) . projected distance): B H T K and B G S K -> B H T S."""
        projected = self.projection(self.dropout(distances.vectors))[None]  # 1 R (H K)
        vectors = projected.unflatten(-1, (-1, self.width)).transpose(1, 2)  # 1 H R K
        products = (query + self.distance_bias[:, None]) @ vectors.transpose(-1, -2)  # B H T R
        rows = distances.rows[:, None].expand(query.shape[0], query.shape[1], -1, -1)  # B H T S
        content = head_products(self.content_bias[None, :, None], key)  # B H 1 S
        return attention.scale * (products.gather(-1, rows) + content)
