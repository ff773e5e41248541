"""Images in tiles, as Idefics 3 and SmolVLM read them: the squares of a grid, row after row, and then the whole image."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LONGEST = 4 * 364
"""The length that the longer side of an image is resized to, unless a checkpoint states another."""


@dataclass(frozen=True)
class Grid:
    """The tiles that an image is cut into; none where it stays whole."""

    rows: int = 0
    columns: int = 0

    @property
    def images(self) -> int:
        """The number of tiles, with the whole image."""
        return self.rows * self.columns + 1


@dataclass(frozen=True)
class Tiles:
    """The settings of a checkpoint: the ``side`` of a tile, to which the whole image is resized too.

    ``longest`` is the length that the longer side of an image is resized to at first, None to leave it; unless it ``splits``,
    an image stays whole.
    """

    side: int
    longest: int | None = LONGEST
    splits: bool = True
    usual_resample = 1
    """Pillow's number of the filter that is used unless a checkpoint states another: Lanczos."""

    @property
    def setting(self) -> str:
        """The setting that asks for tiles."""
        return f"max_image_size {self.side}"

    @property
    def remedy(self) -> str:
        """How images stay whole."""
        return "Remove max_image_size there to read whole images."

    @classmethod
    def stated(cls, stated: Mapping[str, Any]) -> Tiles | None:
        """The settings in a preprocessor_config.json; None where it states no largest image, and so no tiles."""
        side = _longest_edge(stated, "max_image_size", None)
        if side is None:
            return None
        longest = _longest_edge(stated, "size", LONGEST) if stated.get("do_resize", True) else None
        return cls(side, longest, stated.get("do_image_splitting", True) is not False)

    def cut(self, image: Any, resample: int) -> tuple[list[Any], Grid]:
        """The tiles of an image of Pillow and the image itself, all of one size, and their grid."""
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
    """The squares of an image of Pillow whose sides are multiples of theirs, row after row."""
    width, height = image.size
    return [
        image.crop((left, top, left + side, top + side))
        for top in range(0, height, side)
        for left in range(0, width, side)
    ]


def _longest_edge(stated: Mapping[str, Any], name: str, default: int | None) -> int | None:
    value = stated.get(name)
    edge = value.get("longest_edge") if isinstance(value, dict) else value
    return edge if isinstance(edge, int) else default


def _with_longest(size: tuple[int, int], longest: int) -> tuple[int, int]:
    """A size of about the same shape with a longer side of this length, and an even shorter one."""
    width, height = size
    if width >= height:
        shorter = int(longest / (width / height))
        return longest, max(1, shorter + shorter % 2)
    shorter = int(longest * (width / height))
    return max(1, shorter + shorter % 2), longest


def _in_multiples(size: tuple[int, int], side: int) -> tuple[int, int]:
    """A size of about the same shape whose sides are multiples of ``side``, rounded up."""
    width, height = size
    shape = width / height
    if width >= height:
        width = math.ceil(width / side) * side
        return width, math.ceil(int(width / shape) / side) * side
    height = math.ceil(height / side) * side
    return math.ceil(int(height * shape) / side) * side, height
