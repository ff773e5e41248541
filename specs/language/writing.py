"""YAML writer for plain data."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

_COLUMNS = 100
_PLAIN = re.compile(r"[^\W\d_][\w./+()'&,;-]*(?: [\w./+()'&,;-]+)*")  # strings that need no quotes
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}  # not strings in YAML 1.1 or 1.2
_ESCAPED = '["\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]'


def dump(data: Mapping[str, Any]) -> str:
    """Plain data as YAML that reads back equal under both YAML 1.1 and 1.2.

    Keys keep their order. The style is block style, except that a mapping or list of scalars that fits 100 columns is
    written on one line. Raises `TypeError` for anything but plain data.
    """
    return "".join(f"{line}\n" for line in _block(data, 0)) or "{}\n"


def _block(value: Any, indent: int) -> Iterator[str]:
    """The lines of a mapping or list to be indented by `indent` columns."""
    if isinstance(value, Mapping):
        children = [(f"{_string(key)}:", child) for key, child in value.items()]
    else:
        children = [("-", child) for child in value]
    for head, child in children:
        if not _is_collection(child):
            yield f"{head} {_scalar(child)}"
        elif not child or (_is_flat(child) and indent + len(head) + 1 + len(flow(child)) <= _COLUMNS):
            yield f"{head} {flow(child)}"
        else:
            lines = _block(child, indent + 2)
            yield f"- {next(lines)}" if head == "-" else head
            yield from (f"  {line}" for line in lines)


def _is_collection(value: object) -> bool:
    return isinstance(value, Mapping | list | tuple)


def _is_flat(value: Any) -> bool:
    return not any(map(_is_collection, value.values() if isinstance(value, Mapping) else value))


def flow(value: Any) -> str:
    """Plain data as YAML on one line, in flow style."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_string(key, flow=True)}: {flow(child)}' for key, child in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(flow, value))}]"
    return _scalar(value, flow=True)


def _scalar(value: object, flow: bool = False) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, str):
        return _string(value, flow)
    raise TypeError(f"not plain data: {value!r}")


def _float(value: float) -> str:
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    mantissa, e, exponent = repr(value).partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}{e}{exponent}"  # YAML 1.1 needs the dot: 1.0e-05


def _string(text: str, flow: bool = False) -> str:
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS and not (flow and "," in text)
    if is_plain:
        return text
    is_safe = text.isprintable() and '"' not in text and "\\" not in text
    return f'"{text if is_safe else re.sub(_ESCAPED, _escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if char in '"\\\n\t':
        return {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}[char]
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
