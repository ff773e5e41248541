"""Scalars by the YAML 1.2 core schema: `1e-5` is a number, and `no`, `on` and `1_000` are strings."""

from __future__ import annotations

import re

from specs.language.document import MAX_DIGITS

_NULL = re.compile(r"null|Null|NULL|~|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
TAGS = {f"tag:yaml.org,2002:{t}": kind for t, kind in
         {"str": str, "int": int, "float": float, "bool": bool, "null": type(None)}.items()}  # fmt: skip


def _integer(text: str) -> int:
    return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))


def is_huge(text: str) -> bool:
    """Whether a text is an integer out of bounds; very long texts are not converted."""
    if not _INT.fullmatch(text):
        return False
    return len(text) > MAX_DIGITS + 2 or abs(_integer(text)) >= 10**MAX_DIGITS


def resolve(text: str) -> str | int | float | bool | None:
    """The value of an unquoted scalar."""
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if _INT.fullmatch(text):
        return _integer(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _SPECIAL.fullmatch(text):
        return float(text.replace(".", ""))
    return text
