"""Positions whose vectors each layer compares with its queries and keys.

Shapes: batch B, query length T, key length S, width D, heads H, key-value heads G, head width K, distances R.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from zoo.components.position import Position


@dataclass(frozen=True)
class Distances:
    """The trained vectors of distances, R D, and the row of each query and key, (B or 1) T S."""

    vectors: Tensor
    rows: Tensor


class ProjectsVectors(Protocol):
    """The scale of an attention, and its projections of vectors to queries and keys."""

    scale: float

    def queries(self, x: Tensor) -> Tensor:
        """B R D -> B H R K."""

    def keys(self, x: Tensor) -> Tensor:
        """B R D -> B G R K."""


def head_products(query: Tensor, key: Tensor) -> Tensor:
    """The products of each query with each key: (B or 1) H T K and (B or 1) G S K, G dividing H -> B H T S."""
    groups = key.shape[1]
    if groups == query.shape[1]:
        return query @ key.transpose(-1, -2)
    queries = query.unflatten(1, (groups, query.shape[1] // groups))  # (B or 1) G H/G T K
    return (queries @ key[:, :, None].transpose(-1, -2)).flatten(1, 2)


class ComparedPosition(Position):
    """The base of positions that add, in each layer, products of its queries and keys with vectors of distances."""

    def distances(self, queries: Tensor, keys: Tensor, like: Tensor) -> Distances:
        """The vectors that all layers compare with; arguments as for ``bias``."""
        raise NotImplementedError

    def compare(self, attention: ProjectsVectors, query: Tensor, key: Tensor, distances: Distances) -> Tensor:
        """The scores of an attention's queries and keys with vectors: B H T K and B G S K -> B H T S."""
        raise NotImplementedError

    def layer_bias(
        self, bias: Tensor | None, distances: Distances, attention: Any, x: Tensor, query: Tensor, key: Tensor
    ) -> Tensor:
        compared = self.compare(attention, query, key, distances)  # B H T S
        return compared if bias is None else bias + compared
