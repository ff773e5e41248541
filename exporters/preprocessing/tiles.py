"""Tiling of images for Idefics 3 and SmolVLM: the squares of a grid, row by row, followed by the whole image."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LONGEST = 4 * 364
"""The default length of the longer side of an image after resizing."""


@dataclass(frozen=True)
class Grid:
    """The rows and columns of an image's tiles; 0 if it stays whole."""

    rows: int = 0
    columns: int = 0

    @property
    def images(self) -> int:
        """The number of tiles, including the whole image."""
        return self.rows * self.columns + 1


@dataclass(frozen=True)
class Tiles:
    """The tiling settings of a checkpoint: the ``side`` of a tile, and of the resized whole image.

    ``longest``: the length to which the longer side is first resized, None to leave it. Unless it ``splits``, an image stays
    whole.
    """

    side: int
    longest: int | None = LONGEST
    splits: bool = True
    usual_resample = 1
    """Pillow's number of the default filter: Lanczos."""

    @property
    def setting(self) -> str:
        """The setting that enables tiles, for messages."""
        return f"max_image_size {self.side}"

    @property
    def remedy(self) -> str:
        """The advice to keep images whole, for messages."""
        return "Remove max_image_size there to read whole images."

    @classmethod
    def stated(cls, settings: Mapping[str, Any]) -> Tiles | None:
        """The settings in a preprocessor_config.json; None if it has no largest image size, and so no tiles."""
        side = _longest_edge(settings, "max_image_size", None)
        if side is None:
            return None
        longest = _longest_edge(settings, "size", LONGEST) if settings.get("do_resize", True) else None
        return cls(side, longest, settings.get("do_image_splitting", True) is not False)

    def cut(self, image: Any, resample: int) -> tuple[list[Any], Grid]:
        """Cut a Pillow image: its tiles and the whole image, all of one size, and the grid."""
        side = self.side
        if self.longest is not None:
            image = image.resize(_with_longest(image.size, self.longest), resample)
        if not self.splits:
            return [image.resize((side, side), resample)], Grid()
        width, height = _in_multiples(image.size, side)
        image = image.resize((width, height), resample)
        if width == height == side:
            return [image], Grid()
        whole = image.resize((side, side), resample)
        return [*cut_to_squares(image, side), whole], Grid(height // side, width // side)


def cut_to_squares(image: Any, side: int) -> list[Any]:
    """Cut a Pillow image, with sides that are multiples of ``side``, into squares, row by row."""
    width, height = image.size
    return [
        image.crop((left, top, left + side, top + side))
        for top in range(0, height, side)
        for left in range(0, width, side)
    ]


def _longest_edge(settings: Mapping[str, Any], name: str, default: int | None) -> int | None:
    value = settings.get(name)
    edge = value.get("longest_edge") if isinstance(value, dict) else value
    return edge if isinstance(edge, int) else default


def _with_longest(size: tuple[int, int], longest: int) -> tuple[int, int]:
    """Scale a size to a longer side of this length and an even shorter side."""
    width, height = size
    if width >= height:
        shorter = int(longest / (width / height))
        return longest, max(1, shorter + shorter % 2)
    shorter = int(longest * (width / height))
    return max(1, shorter + shorter % 2), longest


def _in_multiples(size: tuple[int, int], side: int) -> tuple[int, int]:
    """Scale a size up to multiples of ``side``, with about the same ratio."""
    width, height = size
    shape = width / height
    if width >= height:
        width = math.ceil(width / side) * side
        return width, math.ceil(int(width / shape) / side) * side
    height = math.ceil(height / side) * side
    return math.ceil(int(height * shape) / side) * side, height
