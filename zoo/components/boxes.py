"""Where tokens are on their page (LayoutLM: Xu et al., 2019)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from zoo.components.linear import EmbeddingTable


class Boxes(nn.Module):
    """Sums of the vectors of a box's edges, height and width; each edge shares its table with the edge across."""

    parameter_role = "embedding"

    def __init__(self, coordinates: int, width: int) -> None:
        super().__init__()
        self.x, self.y, self.height, self.width = (EmbeddingTable(coordinates, width) for _ in range(4))

    def forward(self, bbox: Tensor | None) -> Tensor:
        """bbox: B T 4, the left, top, right and bottom edge, or None for zeros -> B T D, or D."""
        if bbox is None:
            tables = (self.x, self.y, self.x, self.y, self.height, self.width)
            return torch.stack([table.weight[0] for table in tables]).sum(0)
        left, top, right, bottom = (bbox[..., edge] for edge in range(4))
        edges = self.x(left) + self.y(top) + self.x(right) + self.y(bottom)
        return edges + self.height(self.extent(top, bottom)) + self.width(self.extent(left, right))

    def extent(self, first: Tensor, last: Tensor) -> Tensor:
        """From the first edge to the last, B T; beyond the table where the last is before the first, so that a graph fails there too,
        whose negative indices would count from the end of the table."""
        extent = last - first
        return torch.where(extent < 0, self.x.num_embeddings, extent)
