"""Images in tiles, as InternVL reads them: those of the grid whose shape is nearest to the image's, and then the whole image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from exporters.preprocessing.tiles import Grid, cut_to_squares

_SIDE, _MOST = 384, 12
"""The side of a tile and the largest number of tiles, unless a checkpoint states others."""


@dataclass(frozen=True)
class CanvasTiles:
    """The settings of a checkpoint: the ``side`` of a tile, and the least and the most tiles of an image."""

    side: int
    least: int = 1
    most: int = _MOST
    usual_resample = 3
    """Pillow's number of the filter that is used unless a checkpoint states another: bicubic."""

    @property
    def setting(self) -> str:
        """The setting that asks for tiles."""
        return f"max_patches {self.most}"

    @property
    def remedy(self) -> str:
        """How images stay whole."""
        return "Set max_patches to 1 there to read whole images."

    @classmethod
    def stated(cls, stated: Mapping[str, Any]) -> CanvasTiles | None:
        """The settings in a preprocessor_config.json; None where it states no tiles.

        InternVL's processor cuts images whatever ``crop_to_patches`` says.
        """
        cuts = stated.get("crop_to_patches") is True or stated.get("processor_class") == "InternVLProcessor"
        least, most = stated.get("min_patches", 1), stated.get("max_patches", _MOST)
        if not cuts or not isinstance(least, int) or not isinstance(most, int) or most <= 1:
            return None
        size = stated.get("size")
        side = size.get("height") if isinstance(size, dict) else size
        return cls(side if isinstance(side, int) else _SIDE, least, most)

    def cut(self, image: Any, resample: int) -> tuple[list[Any], Grid]:
        """The tiles of an image of Pillow and the image itself, all of one size, and their grid."""
        columns, rows = self._grid(*image.size)
        whole = image.resize((self.side, self.side), resample)
        if columns * rows == 1:
            return [whole], Grid()
        resized = image.resize((columns * self.side, rows * self.side), resample)
        return [*cut_to_squares(resized, self.side), whole], Grid(rows, columns)

    def _grid(self, width: int, height: int) -> tuple[int, int]:
        """Columns and rows whose ratio is nearest to that of an image; of equally near ones the last whose tiles have less than
        twice the area of the image."""
        best, nearest = (1, 1), float("inf")
        for columns, rows in self._grids():
            apart = abs(width / height - columns / rows)
            large = width * height > 0.5 * self.side**2 * columns * rows
            if apart < nearest or (apart == nearest and large):
                best, nearest = (columns, rows), apart
        return best

    def _grids(self) -> list[tuple[int, int]]:
        """All columns and rows, the fewest tiles first."""
        sides = range(1, self.most + 1)
        grids = [(columns, rows) for columns in sides for rows in sides]
        fitting = (grid for grid in grids if self.least <= grid[0] * grid[1] <= self.most)
        return sorted(fitting, key=lambda grid: grid[0] * grid[1])
