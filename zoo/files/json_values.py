"""JSON from files that nobody vouches for."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from specs.base.errors import UserError
from zoo.files.reading import COPY_AGAIN, read_regular, unreadable

LARGEST = 64 * 2**20
"""Bytes of the largest file that is read."""

DEEPEST = 64
"""Levels of nesting that are read: these files have five, and Python's own limit depends on the caller."""


def read_object(path: Path, error: type[UserError], within: Path | None = None) -> dict[str, Any]:
    """The JSON object in a file, which must lie in the directory ``within``, if given.

    Raises ``error``, which names the file, what is wrong with it, and the remedy.
    """
    return parse_object(_text(path, error, within), str(path), error)


def read_list(path: Path, error: type[UserError], within: Path | None) -> list[Any]:
    """The JSON list in a file.  Raises as :func:`read_object`."""
    value = _value(_text(path, error, within), str(path), error, COPY_AGAIN)
    if not isinstance(value, list):
        raise error(f"{path} is not a JSON list{COPY_AGAIN}")
    return value


def parse_object(text: bytes, what: str, error: type[UserError], remedy: str = COPY_AGAIN) -> dict[str, Any]:
    """The object that JSON text encodes.  Raises ``error``, which calls the text ``what``, if it encodes none."""
    value = _value(text, what, error, remedy)
    if not isinstance(value, dict):
        raise error(f"{what} is not a JSON object{remedy}")
    return value


def _text(path: Path, error: type[UserError], within: Path | None) -> bytes:
    try:
        return read_regular(path, within, LARGEST)
    except OSError as problem:
        raise error(unreadable(path, problem)) from None


def _value(text: bytes, what: str, error: type[UserError], remedy: str) -> Any:
    """The value that JSON text encodes; None if it is not JSON."""
    try:
        value = json.loads(text)
        if _depth_exceeds(value, DEEPEST):
            raise RecursionError
    except RecursionError:
        raise error(f"{what} is nested more than {DEEPEST} levels deep{remedy}") from None
    except ValueError:
        return None
    if b"\\u" in text and not _is_text(value):
        raise error(f"{what} has a string with an unpaired surrogate{remedy}")
    return value


def _depth_exceeds(value: Any, levels: int) -> bool:
    level = [value]
    for _ in range(levels):
        level = [inner for outer in level for inner in _inner(outer) if isinstance(inner, dict | list)]
    return bool(level)


def _inner(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _is_text(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
