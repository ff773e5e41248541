"""The reference of a function or class: its signature and its docstring, as Markdown."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

_ROLE = re.compile(r":\w+:`~?(?:[\w.]*\.)?(\w+)`")
_NAMELESS = re.compile(r"<[^<>]*(?:<lambda>)?[^<>]* at 0x\w+>|<factory>")
_QUOTED = re.compile(r": '([^']*)'")
_WIDTH = 100


def python_entry(path: str) -> str:
    """The entry of ``zoo.load`` or another name with dots."""
    found = _found(path)
    signature = _signature(path, found)
    text = _ROLE.sub(r"`\1`", inspect.cleandoc(found.__doc__ or "")).replace("``", "`")
    return f"### {path}\n\n```python\n{signature}\n```\n\n{text}\n"


def _found(path: str) -> Any:
    """What a name with dots stands for."""
    parts = path.split(".")
    for depth in range(len(parts) - 1, 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:depth]))
        except ImportError:
            continue
        for part in parts[depth:]:
            found = getattr(found, part)
        return found
    raise ImportError(path)


def _signature(path: str, found: Any) -> str:
    """A call with its parameters, one per line where they do not fit on one."""
    name = path.rpartition(".")[2]
    if isinstance(found, type) and issubclass(found, Exception):
        return f"class {name}({found.__mro__[1].__name__})"
    if isinstance(found, type) and issubclass(found, dict):  # a TypedDict has keys, and no signature
        keys = [f"    {key}: {_text(kind)}," for key, kind in found.__annotations__.items()]
        return "\n".join([f"class {name}(TypedDict):", *(key.rstrip(",") for key in keys)])
    signature = inspect.signature(found)
    parameters = [
        _QUOTED.sub(r": \1", _NAMELESS.sub("...", str(each))) for each in signature.parameters.values()
    ]
    keywords = [i for i, each in enumerate(signature.parameters.values()) if each.kind is each.KEYWORD_ONLY]
    if keywords:
        parameters.insert(keywords[0], "*")
    result = signature.return_annotation
    given = "" if isinstance(found, type) or result is signature.empty else f" -> {result}"
    line = f"{name}({', '.join(parameters)}){given}"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {each}," for each in parameters), f"){given}"])


def _text(annotation: Any) -> str:
    return str(getattr(annotation, "__forward_arg__", annotation))
