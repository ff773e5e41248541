"""Texts: the corpus in this package, by kind, and files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from specs.base.errors import UserError
from zoo.files.reading import open_regular, unreadable

LARGEST = 2**22
"""The number of bytes to read of a text."""

LANGUAGES = (
    "german", "french", "spanish", "portuguese", "russian", "chinese", "japanese", "arabic", "hindi",
)  # fmt: skip
"""The kinds of text in the corpus that many models do not read."""

KINDS = ("prose", "chat", "code", "data", "numbers", "law", "verse", *LANGUAGES)
"""The kinds of text in the corpus: what models are used for. All but the languages are in English."""


class Texts(NamedTuple):
    """Texts by kind, their common name, and the digest of their bytes; a file is one text of the kind ``""``."""

    name: str
    sha256: str
    kinds: Mapping[str, str]


def corpus() -> dict[str, str]:
    """The texts in this package by kind, many short pieces each, written for this purpose."""
    folder = files("exporters.quality").joinpath("corpus")
    return {kind: folder.joinpath(f"{kind}.txt").read_text("utf-8") for kind in KINDS}


def texts_of(path: Path | None) -> Texts:
    """Read a file, or the corpus."""
    if path is None:
        kinds = corpus()
        return Texts(
            "the corpus of zoo", hashlib.sha256("\n\n".join(kinds.values()).encode()).hexdigest(), kinds
        )
    text, sha256 = read_text(path)
    return Texts(str(path), sha256, {"": text})


def read_text(path: Path) -> tuple[str, str]:
    """Read a text; return it and the digest of the bytes read."""
    try:
        with open_regular(path) as file:
            content = file.read(LARGEST)
    except OSError as error:
        raise UserError(unreadable(path, error)) from None
    sha256 = hashlib.sha256(content).hexdigest()
    try:
        return content.decode("utf-8-sig"), sha256
    except UnicodeDecodeError as error:
        if len(content) == LARGEST and error.start > LARGEST - 4:  # truncated within a character
            return content[: error.start].decode("utf-8-sig"), sha256
        raise UserError(
            f"{path}: text must be UTF-8, and byte {error.start} is 0x{content[error.start]:02x}\n"
            "  Save the file as UTF-8, or give token ids in a .npy file."
        ) from None
