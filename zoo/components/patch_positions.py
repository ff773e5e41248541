"""Positions of the patches of an image, by row and column, that act inside attention.

Where every input has the same patches, what follows from their places is constant. Shapes: vectors T, heads H, head width K.
"""

from __future__ import annotations

import functools
import math
import operator

import torch
from torch import Tensor

import specs.kinds.patch_positions as spec
from zoo import functional
from zoo.components.linear import EmbeddingTable
from zoo.components.position import Position
from zoo.components.rope_frequencies import Rotation
from zoo.context import BuildContext, PositionContext
from zoo.core.precision import wide
from zoo.core.sharding import COLUMNS, Sharding
from zoo.registry import builds


def patch_places(context: BuildContext) -> tuple[int, list[tuple[int, int]]]:
    """The number of vectors before the patches, and the row and column of each patch."""
    assert context.patch_grid is not None
    assert context.context_length is not None
    rows, columns, _ = context.patch_grid
    places = [(row, column) for row in range(rows) for column in range(columns)]
    return context.context_length - len(places), places


def centred_angles(count: int) -> list[float]:
    """2 pi times the centre of each of ``count`` rows or columns, from -1 to 1 over the image; in float32 as the reference."""
    centres = torch.arange(0.5, count, dtype=torch.float32, device="cpu") / count
    angles: list[float] = (2 * math.pi * (2.0 * centres - 1.0)).tolist()
    return angles


@builds(spec.AxialRope)
class AxialRope(Position):
    """Rotation of queries and keys by angles proportional to the row and to the column of their patch."""

    def __init__(self, spec: spec.AxialRope, context: PositionContext) -> None:
        super().__init__(spec, context)
        self.theta, self.joined = spec.theta, False
        self.rows: tuple[float, ...] = ()
        self.columns: tuple[float, ...] = ()
        if context.patch_grid is not None:
            before, places = patch_places(context)
            centred = spec.coordinates == "centred"
            down, across = (
                centred_angles(count) if centred else list(map(float, range(count)))
                for count in context.patch_grid[:2]
            )
            after = [0.0] * context.queries
            self.rows = (*[0.0] * before, *(down[row] for row, _ in places), *after)
            self.columns = (*[0.0] * before, *(across[column] for _, column in places), *after)
            self.joined = bool(after)
        self._prepared: dict[int, tuple[tuple[float, ...], tuple[float, ...]]] = {}  # by width

    def prepare(self, width: int) -> None:
        exponents = Rotation(self.theta, width // 2, None).exponents
        frequencies = tuple((1.0 / self.theta**exponents).tolist())
        none = (0.0,) * len(frequencies)
        self._prepared[width] = (*frequencies, *none), (*none, *frequencies)

    def angles(self, width: int, positions: Tensor, like: Tensor) -> Tensor:
        """The angle of each pair of a head, rows before columns, 0 for queries: 1 T K/2, float32.

        positions: row and column of each patch, and more, where images have any size, A 1 T; else anything.
        """
        if width not in self._prepared:
            self.prepare(width)
        if self.rows:
            positions = torch.stack(
                [functional.constant(axis, like)[None] for axis in (self.rows, self.columns)]
            )
            positions = positions[..., : like.shape[2]] if self.joined else positions  # until queries join
        return functional.angles_by_axis(positions, self._prepared[width])

    def rotate(self, x: Tensor, positions: Tensor, width: int) -> Tensor:
        angles = self.angles(width, positions, x)  # 1 T K/2
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        return functional.rotary_embedding(x, cos, sin, dimensions=width, interleaved=False)


@builds(spec.Interpolated)
class Interpolated(Position):
    """A trained vector per place of a square grid, interpolated between the four around each patch."""

    def __init__(self, spec: spec.Interpolated, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.side = spec.side
        self.table = EmbeddingTable(spec.side**2, context.d_model)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """x: 1 N D, positions: row and column of each patch, and rows and columns of its image, 4 1 N."""
        row, column, rows, columns = (positions[axis] for axis in range(4))
        down, across = self._between(row, rows), self._between(column, columns)
        corners = [
            wide(self.table(low * self.side + left)) * (share_down * share_across)[..., None]
            for low, share_down in down
            for left, share_across in across
        ]
        return x + functools.reduce(operator.add, corners)

    def _between(self, index: Tensor, count: Tensor) -> list[tuple[Tensor, Tensor]]:
        """The two rows or columns of the grid around each of an image, with their shares, which are 1 together."""
        scaled, steps = index * (self.side - 1), (count - 1).clamp(min=1)
        low = scaled // steps
        share = (scaled - low * steps).to(torch.float32) / steps.to(torch.float32)
        return [(low, 1.0 - share), ((low + 1).clamp(max=self.side - 1), share)]


@builds(spec.RelativeBias2d)
class RelativeBias2d(Position):
    """A trained bias per head for each difference in rows and columns, then those to, from and among the vectors before the
    patches."""

    def __init__(self, spec: spec.RelativeBias2d, context: PositionContext) -> None:
        super().__init__(spec, context)
        before, places = patch_places(context)
        assert context.patch_grid is not None
        assert context.heads is not None
        rows, columns, _ = context.patch_grid
        across = 2 * columns - 1
        self.differences = (2 * rows - 1) * across
        self.numbers = (*[0] * before, *(row * across + column for row, column in places))
        self.others = (*[1] * before, *[0] * len(places))
        self.table = EmbeddingTable(self.differences + (3 if before else 0), context.heads)

    def sharding(self) -> Sharding:
        """By heads."""
        return Sharding({"table": COLUMNS}, {"heads": self.table.embedding_dim})

    def table_rows(self, like: Tensor) -> Tensor:
        """The row of the table for each query and key: 1 T T."""
        numbers = functional.constant(self.numbers, like)[None]  # 1 T
        between = self.differences // 2 - functional.relative_positions(numbers, numbers)  # 1 T T
        if not any(self.others):
            return between
        others = functional.constant(self.others, like)[None]  # 1 T
        query, key = others[:, :, None], others[:, None]
        return torch.where(query + key > 0, self.differences + key * (query + 1), between)

    def bias(self, queries: Tensor, keys: Tensor, like: Tensor) -> Tensor:
        return self.table(self.table_rows(like)).permute(0, 3, 1, 2)  # 1 H T T
