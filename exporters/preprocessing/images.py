"""Image files as the pixels that vision models read: resized, cropped, rescaled and normalized.

Shapes: channels C, height H, width W.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from exporters.preprocessing.canvas_tiles import CanvasTiles
from exporters.preprocessing.fitting import PREPROCESSOR, check_fit, input_shape, media_bytes
from exporters.preprocessing.tiles import Grid, Tiles
from specs.base.errors import UserError
from specs.model.model import Model
from zoo.checkpoints.carried import stated_in

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff"})
"""The endings of image files, by which those of a directory are found."""

BILINEAR = 2
MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""Pillow's color modes by their number of channels."""

Values = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Pixels:
    """The image settings of a checkpoint.

    ``size`` is the height and width to resize to, or the length of the shorter side; ``crop`` the height and width of the
    center that is kept; ``resample`` Pillow's number of the filter. Values are multiplied by ``factor``, and then ``mean``
    is subtracted and the rest divided by ``std``, one number for all channels or one for each. With ``tiles``, an image
    becomes several.
    """

    size: tuple[int, int] | int | None = None
    crop: tuple[int, int] | None = None
    resample: int = BILINEAR
    factor: float = 1 / 255
    mean: tuple[float, ...] = (0.5,)
    std: tuple[float, ...] = (0.5,)
    tiles: Tiles | CanvasTiles | None = None

    @classmethod
    def beside(cls, *directories: Path) -> Pixels | None:
        """The settings in the first directory whose preprocessor_config.json has any for images; None without one.

        Raises :class:`specs.base.errors.UserError` for crops beside an image (Gemma 3's pan and scan).
        """
        for directory in directories:
            stated = stated_in(directory / PREPROCESSOR)
            if stated.get("do_pan_and_scan"):
                raise UserError(
                    f"{directory / PREPROCESSOR}: do_pan_and_scan must be false, as crops beside an image are not supported\n"
                    "  value: true\n  Set it to false to read whole images."
                )
            if any(name in stated for name in ("image_mean", "do_resize", "do_rescale", "do_normalize")):
                return cls._read(stated)
        return None

    @classmethod
    def _read(cls, stated: Mapping[str, Any]) -> Pixels:
        crops = stated.get("do_center_crop") is True
        normalizes = stated.get("do_normalize", True)
        resized, tiles = stated.get("do_resize", True), Tiles.stated(stated) or CanvasTiles.stated(stated)
        return cls(
            size=_size(stated.get("size"), shorter=crops) if resized else None,
            crop=_sides(stated.get("crop_size") or stated.get("size")) if crops else None,
            resample=number_in(stated.get("resample"), tiles.usual_resample if tiles else BILINEAR, int),
            factor=number_in(stated.get("rescale_factor"), 1 / 255, float)
            if stated.get("do_rescale", True)
            else 1.0,
            mean=_channels(stated.get("image_mean"), 0.5) if normalizes else (0.0,),
            std=_channels(stated.get("image_std"), 0.5) if normalizes else (1.0,),
            tiles=tiles,
        )

    def values(self, image: Any) -> Values:
        """An image of Pillow as values: C H W."""
        return self.scaled(self._cropped(self._resized(image)))

    def tiled(self, image: Any) -> tuple[list[Values], Grid]:
        """An image of Pillow as the values of its tiles, C H W each, and their grid."""
        assert self.tiles is not None
        parts, grid = self.tiles.cut(image, self.resample)
        return list(map(self.scaled, parts)), grid

    def scaled(self, image: Any) -> Values:
        """An image of Pillow, as it is, as values: C H W."""
        values = np.asarray(image, np.float32)
        values = values[None] if values.ndim == 2 else values.transpose(2, 0, 1)
        mean, std = (np.array(each, np.float32)[:, None, None] for each in (self.mean, self.std))
        return np.ascontiguousarray((values * np.float32(self.factor) - mean) / std)

    def _resized(self, image: Any) -> Any:
        if self.size is None:
            return image
        if isinstance(self.size, int):
            width, height = image.size
            shorter = min(width, height)
            return image.resize((self.size * width // shorter, self.size * height // shorter), self.resample)
        height, width = self.size
        return image.resize((width, height), self.resample)

    def _cropped(self, image: Any) -> Any:
        if self.crop is None:
            return image
        height, width = self.crop
        left, top = (image.size[0] - width) // 2, (image.size[1] - height) // 2
        return image.crop((left, top, left + width, top + height))


def read_images(paths: Sequence[Path], form: Pixels | None, spec: Model) -> tuple[Values, str]:
    """The pixels of image files as a model reads them, B C H W, and the SHA-256 of their contents.

    Without the settings of a checkpoint, an image is resized to the model's, and its values lie between -1 and 1.

    Raises :class:`specs.base.errors.UserError` for files that are no images, and for settings that give another shape, or tiles.
    """
    channels, height, width = input_shape(spec)
    form = form or Pixels(size=(height, width))
    if form.tiles is not None:
        raise UserError(
            f"{PREPROCESSOR} cuts images into tiles, which only generating text reads\n"
            f"  value: {form.tiles.setting}\n  {form.tiles.remedy}"
        )
    digest, found = hashlib.sha256(), []
    for path in paths:
        image, content = open_image(path, channels)
        digest.update(content)
        found.append(form.values(image))
        check_fit(path, "an image must become", found[-1].shape, spec)
    return np.stack(found), digest.hexdigest()


def read_tiles(paths: Sequence[Path], form: Pixels, spec: Model) -> tuple[Values, list[Grid]]:
    """The pixels of the tiles of all image files, M C H W, and the grid of each file.

    Raises :class:`specs.base.errors.UserError` for files that are no images, and for settings that give another shape.
    """
    found, grids = [], []
    for path in paths:
        tiles, grid = form.tiled(open_image(path, input_shape(spec)[0])[0])
        check_fit(path, "the tiles of an image must become", tiles[0].shape, spec)
        found += tiles
        grids.append(grid)
    return np.stack(found), grids


def is_image(given: Path) -> bool:
    """Whether a path may hold images: a file with such an ending, or a directory."""
    return given.suffix.lower() in SUFFIXES or given.is_dir()


def image_files(given: Path) -> list[Path]:
    """A file, or the images of a directory in order of name.  Raises :class:`specs.base.errors.UserError` for none."""
    if not given.is_dir():
        return [given]
    paths = sorted(path for path in given.iterdir() if path.suffix.lower() in SUFFIXES)
    if not paths:
        raise UserError(f"{given}: must have images\n  value: none\n  Give a directory that has some.")
    return paths


def open_image(path: Path, channels: int) -> tuple[Any, bytes]:
    """An image with so many channels, and the file's content."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise UserError(f"{path}: reading images needs a library: pip install 'zoo[images]'") from None
    if channels not in MODES:
        raise UserError(
            f"{path}: image files have 1, 3 or 4 channels, and the model takes {channels}\n"
            "  Run its graph with onnxruntime."
        )
    try:
        content = media_bytes(path)
        return Image.open(io.BytesIO(content)).convert(MODES[channels]), content
    except UnidentifiedImageError:
        raise UserError(f"{path} is not an image that Pillow reads\n  Save it as PNG or JPEG.") from None
    except Image.DecompressionBombError as error:
        raise UserError(f"{path} has too many pixels: {error}\n  Make it smaller.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}\n  Check the file.") from None


def _size(stated: Any, *, shorter: bool) -> tuple[int, int] | int | None:
    """The size to resize to; a number alone is the shorter side where the center is cropped afterwards."""
    if isinstance(stated, dict) and isinstance(side := stated.get("shortest_edge"), int):
        return side
    if isinstance(stated, int) and shorter:
        return stated
    return _sides(stated)


def _sides(stated: Any) -> tuple[int, int] | None:
    """A height and a width, stated by name, as one number, or as a list."""
    match stated:
        case {"height": int(height), "width": int(width)}:
            return height, width
        case {"shortest_edge": int(side)} | int(side):
            return side, side
        case [int(height), int(width)]:
            return height, width
    return None


def number_in(stated: Any, default: Any, kind: type) -> Any:
    """A stated number, or the default where it is none."""
    return kind(stated) if isinstance(stated, int | float) and not isinstance(stated, bool) else default


def _channels(stated: Any, default: float) -> tuple[float, ...]:
    """One number for each channel."""
    if isinstance(stated, list) and stated and all(isinstance(each, int | float) for each in stated):
        return tuple(map(float, stated))
    return (default,)
