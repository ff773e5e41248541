"""The sizes of a model's input, and the configuration files with preprocessing settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from specs.base.errors import UserError
from specs.model.model import Model
from zoo.checkpoints.carried import stated_in
from zoo.files.reading import read_regular, unreadable

PREPROCESSOR = "preprocessor_config.json"
"""The file with a checkpoint's preprocessing settings."""


_LARGEST = 2**31
"""The size limit of an image or audio file, in bytes."""

PROCESSOR = "processor_config.json"
"""The file with the same settings in newer checkpoints, in sections."""


def audio_settings(directory: Path) -> dict[str, Any]:
    """The settings for audio in a directory; empty without any."""
    return _settings(directory, "feature_extractor")


def image_settings(directory: Path) -> dict[str, Any]:
    """The settings for images in a directory; empty without any."""
    return _settings(directory, "image_processor")


def _settings(directory: Path, section: str) -> dict[str, Any]:
    settings = stated_in(directory / PREPROCESSOR) or stated_in(directory / PROCESSOR).get(section)
    return settings if isinstance(settings, dict) else {}


def media_bytes(path: Path) -> bytes:
    """The bytes of an image or audio file. Raises :class:`specs.base.errors.UserError` if it cannot be read."""
    try:
        return read_regular(path, most=_LARGEST)
    except OSError as error:
        raise UserError(unreadable(path, error, "Check the file.")) from None


def input_shape(spec: Model) -> tuple[int, ...]:
    """The sizes of one image or audio input."""
    stack = spec.reader_of("pixel_values") or spec.first_stack
    return spec.embedding_of(stack).input_shape(spec.context_length_of(stack))


def check_fit(path: Path, rule: str, shape: tuple[int, ...], spec: Model) -> None:
    """Raise :class:`specs.base.errors.UserError` unless ``shape`` is the shape of a model's input; ``rule`` begins the message."""
    if shape != input_shape(spec):
        wanted, got = (" x ".join(map(str, sizes)) for sizes in (input_shape(spec), shape))
        raise UserError(
            f"{path}: {rule} {wanted} for {spec.name}\n"
            f"  value: {got}, from the {PREPROCESSOR} next to the weights\n  Put the model's own {PREPROCESSOR} there."
        )
