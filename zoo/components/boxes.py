"""Where tokens are on their page (LayoutLM: Xu et al., 2019; LiLT: Wang et al., 2022)."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

import specs.kinds.embedding as spec
from zoo.components.linear import EmbeddingTable, Linear
from zoo.components.position import Position
from zoo.context import StackContext
from zoo.registry import build_component


class Boxes(nn.Module):
    """The vectors of a box's edges, height and width; each edge shares its table with the edge across."""

    parameter_role = "embedding"

    def __init__(self, coordinates: int, width: int) -> None:
        super().__init__()
        self.x, self.y, self.height, self.width = (EmbeddingTable(coordinates, width) for _ in range(4))

    def forward(self, bbox: Tensor) -> tuple[Tensor, ...]:
        """bbox: B T 4, the left, top, right and bottom edge -> the vectors of each, of the height and of the width, B T D each."""
        left, top, right, bottom = (bbox[..., edge] for edge in range(4))
        height, width = self._extent(top, bottom), self._extent(left, right)
        return (
            self.x(left),
            self.y(top),
            self.x(right),
            self.y(bottom),
            self.height(height),
            self.width(width),
        )

    def _extent(self, first: Tensor, last: Tensor) -> Tensor:
        """From the first edge to the last, B T; beyond the table where the last is before the first, so that a graph fails there too,
        whose negative indices would count from the end of the table."""
        extent = last - first
        return torch.where(extent < 0, self.x.num_embeddings, extent)


class Layout(nn.Module):
    """norm(projection(the vectors of the box) + position): the stream of the places of tokens."""

    parameter_role = "embedding"

    def __init__(self, spec: spec.Layout, context: StackContext, dropout: float) -> None:
        super().__init__()
        inner = replace(context, d_model=spec.width)
        self.boxes = Boxes(spec.coordinates, context.d_model // 6)
        self.projection = Linear(context.d_model, spec.width)
        self.position: Position = build_component(context.position_kind, inner)  # type: ignore[assignment]
        self.norm = build_component(spec.norm, inner)
        self.dropout = nn.Dropout(dropout)

    def forward(self, bbox: Tensor, positions: Tensor, mask: Tensor | None) -> Tensor:
        """bbox: B T 4, positions and mask: B T -> B T W, of the width of the stream."""
        y = self.projection(torch.cat(self.boxes(bbox), -1))
        return self.dropout(self.norm(self.position.embed_tokens(y, positions, mask)))
