"""``README.md`` of an export, the model card: zoo's own until someone edits it."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from zoo.files.reading import read_regular

CARD = "README.md"

_LARGEST = 2**20
"""Bytes of a model card at most; what is larger was not written by zoo."""

_SEAL = "<!-- written by zoo; edit this file and zoo keeps your version; sha256:{} -->\n"
_SEALED = re.compile(re.escape(_SEAL).replace(r"\{\}", "([0-9a-f]{64})").encode() + rb"\Z")


def sealed(text: str) -> bytes:
    """The content of a card with a last line that has its digest, by which an unedited card is known."""
    content = text.encode()
    return content + _SEAL.format(hashlib.sha256(content).hexdigest()).encode()


def has_own_card(directory: Path) -> bool:
    """Whether a directory has a card that zoo wrote and nobody edited."""
    try:
        content = (
            b"" if (directory / CARD).is_symlink() else read_regular(directory / CARD, directory, _LARGEST)
        )
    except OSError:
        return False
    seal = _SEALED.search(content)
    if seal is None:
        return False
    return hashlib.sha256(content[: seal.start()]).hexdigest().encode() == seal[1]
