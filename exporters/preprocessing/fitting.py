"""Whether what is made of a file has the sizes of a model's input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from specs.base.errors import UserError
from specs.model.model import Model
from zoo.checkpoints.carried import stated_in
from zoo.files.reading import read_regular, unreadable

PREPROCESSOR = "preprocessor_config.json"
"""The file in which checkpoints state how images and sounds are prepared."""


_LARGEST = 2**31
"""The largest file of an image or audio, in bytes."""

PROCESSOR = "processor_config.json"
"""The file in which newer checkpoints state the same, in parts."""


def audio_settings(directory: Path) -> dict[str, Any]:
    """The settings for audio in a directory; empty without any."""
    stated = stated_in(directory / PREPROCESSOR) or stated_in(directory / PROCESSOR).get("feature_extractor")
    return stated if isinstance(stated, dict) else {}


def media_bytes(path: Path) -> bytes:
    """The bytes of a file of an image or audio.  Raises :class:`specs.base.errors.UserError` where it cannot be read."""
    try:
        return read_regular(path, most=_LARGEST)
    except OSError as error:
        raise UserError(unreadable(path, error, "Check the file.")) from None


def input_shape(spec: Model) -> tuple[int, ...]:
    """The sizes of one image or sound."""
    stack = spec.reader_of("pixel_values") or spec.first_stack
    return spec.embedding_of(stack).input_shape(spec.context_length_of(stack))


def check_fit(given: Path, rule: str, found: tuple[int, ...], spec: Model) -> None:
    """Raise :class:`specs.base.errors.UserError` unless these are the sizes of a model's input; ``rule`` begins the message."""
    if found != input_shape(spec):
        wanted, got = (" x ".join(map(str, each)) for each in (input_shape(spec), found))
        raise UserError(
            f"{given}: {rule} {wanted} for {spec.name}\n"
            f"  value: {got}, from the {PREPROCESSOR} next to the weights\n  Put the model's own {PREPROCESSOR} there."
        )
