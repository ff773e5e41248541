"""Images of any size as packed patches, for Qwen's vision-language models."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from exporters.preprocessing.fitting import image_settings
from exporters.preprocessing.images import Pixels, Values, number_in, open_image
from specs.base.errors import UserError
from specs.kinds.packed_patches import PackedPatches
from specs.model.model import Model

BICUBIC = 3
CLIP_MEAN, CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
"""The mean and the standard deviation of colors in CLIP's training data."""

LONGEST_RATIO = 200
"""The largest ratio of the sides of an image."""


@dataclass(frozen=True)
class PackedImages:
    """Images of any size: the pixels of all patches, N W, and the frames, rows and columns of each image, M 3."""

    pixels: Values
    grids: npt.NDArray[np.int64]

    def vectors(self, spec: Model) -> list[int]:
        """The number of vectors of each image."""
        counts: list[int] = (self.grids.prod(1) // spec.image_connector.square**2).tolist()
        return counts


@dataclass(frozen=True)
class Packing:
    """The packing settings of a checkpoint: the ``least`` and ``most`` pixels of an image, and Pillow's number of the filter."""

    least: int = 56 * 56
    most: int = 28 * 28 * 1280
    resample: int = BICUBIC

    @classmethod
    def beside(cls, *directories: Path) -> Packing:
        """The settings in the first directory with a preprocessor_config.json; defaults without one."""
        settings = map(image_settings, directories)
        return cls._read(next((fields for fields in settings if fields), {}))

    @classmethod
    def _read(cls, settings: Mapping[str, Any]) -> Packing:
        size = settings.get("size")
        edges: Mapping[str, Any] = size if isinstance(size, dict) else {}
        least, most = (
            number_in(settings.get(name), number_in(edges.get(edge), default, int), int)
            for name, edge, default in (
                ("min_pixels", "shortest_edge", cls.least),
                ("max_pixels", "longest_edge", cls.most),
            )
        )
        return cls(least, most, number_in(settings.get("resample"), BICUBIC, int))

    def size(self, width: int, height: int, factor: int) -> tuple[int, int]:
        """The width and height to resize to: multiples of ``factor`` with about the same ratio, within the limits."""
        sides = [round(side / factor) * factor for side in (width, height)]
        if math.prod(sides) > self.most:
            shrink = math.sqrt(width * height / self.most)
            sides = [max(factor, math.floor(side / shrink / factor) * factor) for side in (width, height)]
        elif math.prod(sides) < self.least:
            grow = math.sqrt(self.least / (width * height))
            sides = [math.ceil(side * grow / factor) * factor for side in (width, height)]
        return sides[0], sides[1]


def read_packed(paths: Sequence[Path], form: Pixels | None, packing: Packing, spec: Model) -> PackedImages:
    """Read image files as patches, ordered by the squares that the connector joins.

    Without a checkpoint's settings, colors are normalized as in CLIP. Raises :class:`specs.base.errors.UserError` for files that
    are not images, and for extreme aspect ratios.
    """
    embedding, square = spec.embedding_of(spec.stack("image")), spec.image_connector.square
    assert isinstance(embedding, PackedPatches)
    form = form or Pixels(mean=CLIP_MEAN, std=CLIP_STD)
    patches, grids = [], []
    for path in paths:
        image, _ = open_image(path, embedding.channels)
        width, height = image.size
        if max(width, height) > LONGEST_RATIO * min(width, height):
            raise UserError(
                f"{path}: the longer side of an image must be at most {LONGEST_RATIO} times the shorter\n"
                f"  value: {width} x {height}\n  Crop it."
            )
        image = image.resize(packing.size(width, height, embedding.patch_size * square), packing.resample)
        rows, grid = patches_of(form.scaled(image), embedding, square)
        patches.append(rows)
        grids.append(grid)
    return PackedImages(np.concatenate(patches), np.array(grids, np.int64))


def patches_of(pixels: Values, embedding: PackedPatches, square: int) -> tuple[Values, tuple[int, int, int]]:
    """Cut an image, C H W, into patches, ordered by squares of ``square`` patches a side; return them and the grid."""
    size, (channels, height, width) = embedding.patch_size, pixels.shape
    rows, columns = height // size, width // size
    parts = pixels.reshape(channels, rows // square, square, size, columns // square, square, size)
    parts = parts.transpose(1, 4, 2, 5, 0, 3, 6)[:, :, :, :, :, None]  # ... C 1 size size
    parts = np.repeat(parts, embedding.frames, axis=5)
    return np.ascontiguousarray(parts.reshape(rows * columns, -1)), (1, rows, columns)
