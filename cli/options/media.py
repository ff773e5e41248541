"""Image and audio files as the inputs of models, prepared as the checkpoint states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exporters.preprocessing.packed import PackedImages
    from exporters.preprocessing.tiles import Grid
    from exporters.runtime.graph import Floats
    from specs.model.model import Model

INPUT_OPTIONS = {
    "input_ids": ("--text", "--ids"),
    "pixel_values": ("--image",),
    "input_features": ("--audio",),
    "input_values": ("--audio",),
}
"""The options that give an input of a model."""


@dataclass(frozen=True)
class Sounds:
    """Inputs made of recordings, 1 M T, 1 T M or 1 N each, the file of each, and the time from one column to the next."""

    inputs: Sequence[Floats]
    paths: Sequence[Path]
    column_seconds: float


def read_image_files(files: Sequence[Path], spec: Model, directory: Path) -> tuple[Floats, list[Path]]:
    """Images as a model reads them, B C H W, and the file of each, a directory standing for all in it.

    Raises :class:`specs.base.errors.UserError` for files that are no images.
    """
    from exporters.preprocessing.images import Pixels, image_files, read_images

    form = Pixels.beside(directory)
    paths = [path for file in files for path in image_files(file)]
    pixels, _ = read_images(paths, form, spec)
    if form is None:
        _tell("images are resized to the model's size, with values from -1 to 1")
    return pixels, paths


def read_tiled_image_files(
    files: Sequence[Path], spec: Model, directory: Path
) -> tuple[Floats, list[Path], list[Grid]] | None:
    """Images in tiles, M C H W, the file of each image and its grid; None if the checkpoint does not split images.

    Raises :class:`specs.base.errors.UserError` for files that are no images.
    """
    from exporters.preprocessing.images import Pixels, image_files, read_tiles

    form = Pixels.beside(directory)
    if form is None or form.tiles is None:
        return None
    paths = [path for file in files for path in image_files(file)]
    pixels, grids = read_tiles(paths, form, spec)
    return pixels, paths, grids


def read_packed_image_files(
    files: Sequence[Path], spec: Model, directory: Path
) -> tuple[PackedImages, list[Path]]:
    """Images of any size as a model reads them, and the file of each, a directory standing for all in it.

    Raises :class:`specs.base.errors.UserError` for files that are no images.
    """
    from exporters.preprocessing.images import Pixels, image_files
    from exporters.preprocessing.packed import Packing, read_packed

    form = Pixels.beside(directory)
    paths = [path for file in files for path in image_files(file)]
    images = read_packed(paths, form, Packing.beside(directory), spec)
    if form is None:
        _tell("images are resized and normalized as by Qwen2-VL")
    return images, paths


def read_audio_files(files: Sequence[Path], spec: Model, directory: Path) -> Sounds:
    """Recordings as a model reads them: cut into inputs of its length, or whole where inputs have any length.

    Raises :class:`specs.base.errors.UserError` for unsuitable files.
    """
    from exporters.preprocessing.audio import audio_files, read_audio
    from exporters.preprocessing.recordings import form_kind, read_whole, spectrogram_kind

    paths = [path for file in files for path in audio_files(file)]
    if spec.embedding_of(spec.first_stack).any_length:
        settings = form_kind(spec).beside(directory)
        whole = settings or form_kind(spec).default(spec)
        inputs = [read_whole(path, whole, spec)[0][0] for path in paths]
        if settings is None:
            _tell(whole.described)
        return Sounds(inputs, paths, whole.column / whole.rate)
    kind = spectrogram_kind(spec)
    stored = kind.beside(directory)
    form = stored or kind.default(spec)
    recordings = [(path, read_audio(path, form, spec)[0]) for path in paths]
    if stored is None:
        _tell(form.described)
    parts = [(path, part[None]) for path, features in recordings for part in features]
    return Sounds([part for _, part in parts], [path for path, _ in parts], form.hop / form.rate)


def _tell(instead: str) -> None:
    """Report that a checkpoint states no preparation."""
    from cli.terminal.render import say
    from exporters.preprocessing.fitting import PREPROCESSOR

    say(f"There is no {PREPROCESSOR}: {instead}", "dim", err=True)
