"""Texts: the corpus in this package, and files."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path

from specs.base.errors import UserError
from zoo.files.reading import open_regular, unreadable

LARGEST = 2**22
"""The number of bytes to read of a text."""


def corpus() -> str:
    """The text in this package: paragraphs of English prose on many subjects."""
    return files("exporters.quality").joinpath("corpus/prose.txt").read_text("utf-8")


def read_text(path: Path | None) -> tuple[str, str, str]:
    """Read a text; return it, its name, and the digest of the bytes read."""
    if path is None:
        text = corpus()
        return text, "the corpus of zoo", hashlib.sha256(text.encode()).hexdigest()
    try:
        with open_regular(path) as file:
            content = file.read(LARGEST)
    except OSError as error:
        raise UserError(unreadable(path, error)) from None
    sha256 = hashlib.sha256(content).hexdigest()
    try:
        return content.decode("utf-8-sig"), str(path), sha256
    except UnicodeDecodeError as error:
        if len(content) == LARGEST and error.start > LARGEST - 4:  # truncated within a character
            return content[: error.start].decode("utf-8-sig"), str(path), sha256
        raise UserError(
            f"{path}: text must be UTF-8, and byte {error.start} is 0x{content[error.start]:02x}\n"
            "  Save the file as UTF-8, or give token ids in a .npy file."
        ) from None
