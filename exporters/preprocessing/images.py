"""Image files as the pixels of vision models: resized, cropped, rescaled and normalized.

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
from exporters.preprocessing.fitting import PREPROCESSOR, check_fit, image_settings, input_shape, media_bytes
from exporters.preprocessing.tiles import Grid, Tiles
from specs.base.errors import UserError
from specs.model.model import Model

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff"})
"""The suffixes of image files."""

BILINEAR = 2
MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""Pillow's color modes by their number of channels."""

Values = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Pixels:
    """The image settings of a checkpoint.

    ``size``: the height and width to resize to, or the length of the shorter side; ``crop``: the height and width of the center
    crop; ``resample``: Pillow's number of the filter. Values are multiplied by ``factor`` and normalized by ``mean`` and ``std``,
    one number for all channels or one for each. With ``tiles``, an image is cut into several.
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
        """The settings in the first directory whose preprocessor_config.json has image settings; None without any.

        Raises :class:`specs.base.errors.UserError` for additional crops of an image (Gemma 3's pan and scan).
        """
        for directory in directories:
            settings = image_settings(directory)
            if settings.get("do_pan_and_scan"):
                raise UserError(
                    f"{directory / PREPROCESSOR}: do_pan_and_scan must be false, as crops beside an image are not supported\n"
                    "  value: true\n  Set it to false to read whole images."
                )
            if any(name in settings for name in ("image_mean", "do_resize", "do_rescale", "do_normalize")):
                return cls._read(settings)
        return None

    @classmethod
    def _read(cls, settings: Mapping[str, Any]) -> Pixels:
        crops = settings.get("do_center_crop") is True
        normalizes = settings.get("do_normalize", True)
        resized, tiles = (
            settings.get("do_resize", True),
            Tiles.stated(settings) or CanvasTiles.stated(settings),
        )
        return cls(
            size=_size(settings.get("size"), shorter=crops) if resized else None,
            crop=_sides(settings.get("crop_size") or settings.get("size")) if crops else None,
            resample=number_in(settings.get("resample"), tiles.usual_resample if tiles else BILINEAR, int),
            factor=number_in(settings.get("rescale_factor"), 1 / 255, float)
            if settings.get("do_rescale", True)
            else 1.0,
            mean=_channels(settings.get("image_mean"), 0.5) if normalizes else (0.0,),
            std=_channels(settings.get("image_std"), 0.5) if normalizes else (1.0,),
            tiles=tiles,
        )

    def values(self, image: Any) -> Values:
        """Preprocess a Pillow image: C H W."""
        return self.scaled(self._cropped(self._resized(image)))

    def tiled(self, image: Any) -> tuple[list[Values], Grid]:
        """Preprocess the tiles of a Pillow image: C H W each, and their grid."""
        assert self.tiles is not None
        parts, grid = self.tiles.cut(image, self.resample)
        return list(map(self.scaled, parts)), grid

    def scaled(self, image: Any) -> Values:
        """Rescale and normalize a Pillow image without resizing: C H W."""
        values = np.asarray(image, np.float32)
        values = values[None] if values.ndim == 2 else values.transpose(2, 0, 1)
        mean, std = (np.array(numbers, np.float32)[:, None, None] for numbers in (self.mean, self.std))
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
    """Read image files as a model's pixels, B C H W, and the SHA-256 of their contents.

    Without a checkpoint's settings, images are resized to the model's size and scaled to -1..1.

    Raises :class:`specs.base.errors.UserError` for files that are not images, and for settings with another shape, or tiles.
    """
    channels, height, width = input_shape(spec)
    form = form or Pixels(size=(height, width))
    if form.tiles is not None:
        raise UserError(
            f"{PREPROCESSOR} cuts images into tiles, which only generating text reads\n"
            f"  value: {form.tiles.setting}\n  {form.tiles.remedy}"
        )
    digest, pixels = hashlib.sha256(), []
    for path in paths:
        image, content = open_image(path, channels)
        digest.update(content)
        pixels.append(form.values(image))
        check_fit(path, "an image must become", pixels[-1].shape, spec)
    return np.stack(pixels), digest.hexdigest()


def read_tiles(paths: Sequence[Path], form: Pixels, spec: Model) -> tuple[Values, list[Grid]]:
    """Read image files as the pixels of all tiles, M C H W, and the grid of each file.

    Raises :class:`specs.base.errors.UserError` for files that are not images, and for settings with another shape.
    """
    pixels, grids = [], []
    for path in paths:
        tiles, grid = form.tiled(open_image(path, input_shape(spec)[0])[0])
        check_fit(path, "the tiles of an image must become", tiles[0].shape, spec)
        pixels += tiles
        grids.append(grid)
    return np.stack(pixels), grids


def is_image(path: Path) -> bool:
    """Whether a path may hold images: a file with an image suffix, or a directory."""
    return path.suffix.lower() in SUFFIXES or path.is_dir()


def image_files(path: Path) -> list[Path]:
    """The path of a file, or of a directory's images in order of name. Raises :class:`specs.base.errors.UserError` for none."""
    if not path.is_dir():
        return [path]
    paths = sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES)
    if not paths:
        raise UserError(f"{path}: must have images\n  value: none\n  Give a directory that has some.")
    return paths


def open_image(path: Path, channels: int) -> tuple[Any, bytes]:
    """Open an image with ``channels`` channels; return it and the file's content."""
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


def _size(value: Any, *, shorter: bool) -> tuple[int, int] | int | None:
    """The size to resize to; a single number is the shorter side if a center crop follows."""
    if isinstance(value, dict) and isinstance(side := value.get("shortest_edge"), int):
        return side
    if isinstance(value, int) and shorter:
        return value
    return _sides(value)


def _sides(value: Any) -> tuple[int, int] | None:
    """A height and a width, from fields, one number, or a list."""
    match value:
        case {"height": int(height), "width": int(width)}:
            return height, width
        case {"shortest_edge": int(side)} | int(side):
            return side, side
        case [int(height), int(width)]:
            return height, width
    return None


def number_in(value: Any, default: Any, kind: type) -> Any:
    """A number from a config; the default for anything else."""
    return kind(value) if isinstance(value, int | float) and not isinstance(value, bool) else default


def _channels(value: Any, default: float) -> tuple[float, ...]:
    """One number for each channel."""
    if isinstance(value, list) and value and all(isinstance(number, int | float) for number in value):
        return tuple(map(float, value))
    return (default,)
