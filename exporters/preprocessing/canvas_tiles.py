"""Tiling of images for InternVL: the grid with the aspect ratio nearest to the image's, followed by the whole image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from exporters.preprocessing.tiles import Grid, cut_to_squares

_SIDE, _MOST = 384, 12
"""The default side of a tile and the default largest number of tiles."""


@dataclass(frozen=True)
class CanvasTiles:
    """The tiling settings of a checkpoint: the ``side`` of a tile, and the least and the most tiles of an image."""

    side: int
    least: int = 1
    most: int = _MOST
    usual_resample = 3
    """Pillow's number of the default filter: bicubic."""

    @property
    def setting(self) -> str:
        """The setting that enables tiles, for messages."""
        return f"max_patches {self.most}"

    @property
    def remedy(self) -> str:
        """The advice to keep images whole, for messages."""
        return "Set max_patches to 1 there to read whole images."

    @classmethod
    def stated(cls, settings: Mapping[str, Any]) -> CanvasTiles | None:
        """The settings in a preprocessor_config.json; None if it enables no tiles.

        InternVL's processor cuts images whatever ``crop_to_patches`` says.
        """
        cuts = (
            settings.get("crop_to_patches") is True or settings.get("processor_class") == "InternVLProcessor"
        )
        least, most = settings.get("min_patches", 1), settings.get("max_patches", _MOST)
        if not cuts or not isinstance(least, int) or not isinstance(most, int) or most <= 1:
            return None
        size = settings.get("size")
        side = size.get("height") if isinstance(size, dict) else size
        return cls(side if isinstance(side, int) else _SIDE, least, most)

    def cut(self, image: Any, resample: int) -> tuple[list[Any], Grid]:
        """Cut a Pillow image: its tiles and the whole image, all of one size, and the grid."""
        columns, rows = self._grid(*image.size)
        whole = image.resize((self.side, self.side), resample)
        if columns * rows == 1:
            return [whole], Grid()
        resized = image.resize((columns * self.side, rows * self.side), resample)
        return [*cut_to_squares(resized, self.side), whole], Grid(rows, columns)

    def _grid(self, width: int, height: int) -> tuple[int, int]:
        """The columns and rows with the ratio nearest to an image's.

        Among equally near grids, the last whose tiles have less than twice the area of the image.
        """
        best, nearest = (1, 1), float("inf")
        for columns, rows in self._grids():
            apart = abs(width / height - columns / rows)
            large = width * height > 0.5 * self.side**2 * columns * rows
            if apart < nearest or (apart == nearest and large):
                best, nearest = (columns, rows), apart
        return best

    def _grids(self) -> list[tuple[int, int]]:
        """All grids, fewest tiles first."""
        sides = range(1, self.most + 1)
        grids = [(columns, rows) for columns in sides for rows in sides]
        fitting = (grid for grid in grids if self.least <= grid[0] * grid[1] <= self.most)
        return sorted(fitting, key=lambda grid: grid[0] * grid[1])
