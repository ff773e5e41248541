"""Scalars by the YAML 1.2 core schema: `1e-5` is a number, and `no`, `on` and `1_000` are strings."""

from __future__ import annotations

import re

from specs.language.document import MAX_DIGITS

_NAMED: dict[str, float | bool | None] = {
    **dict.fromkeys(("null", "Null", "NULL", "~", "")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{f"{sign}.{name}": float(sign + name) for sign in ("", "-", "+") for name in ("inf", "Inf", "INF")},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
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
    if text in _NAMED:
        return _NAMED[text]
    if _INT.fullmatch(text):
        return _integer(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text
