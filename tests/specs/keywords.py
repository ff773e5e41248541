"""The keywords of ``zoo.export``, written from the table of options, and the names that help lists without torch."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from exporters.layouts import LAYOUTS
from exporters.target.targets import TARGETS
from specs.base.descriptions import field_descriptions
from specs.files import export_keywords
from specs.files.export_options import OptionTable


def _names(table: Iterable[str]) -> str:
    """The names of a table, as a tuple is written."""
    return f"({', '.join(map(_quoted, table))})"


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


FILE = Path(export_keywords.__file__)

_HEAD = f'''"""The keywords of ``zoo.export``, for editors and type checkers, and the names that its help lists.

Written by ``make digests`` from :class:`specs.files.export_options.OptionTable` and the tables of targets and layouts.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, TypedDict

TARGETS = {_names(TARGETS)}
LAYOUTS = {_names(LAYOUTS)}
"""The names of zoo's own targets and layouts: their tables need torch."""


class ExportKeywords(TypedDict, total=False):
    """The options of an export."""
'''
_ACCEPTED = {tuple: "str | Sequence[str]", Path: "str | os.PathLike[str]"}
"""The values that options of a type accept."""


def keywords_text() -> str:
    """The text of the module."""
    hints = get_type_hints(OptionTable)
    parts = [_HEAD]
    for name, text in field_descriptions(OptionTable).items():
        lines = textwrap.wrap(f'"""{text}"""', 120, initial_indent="    ", subsequent_indent="    ")
        accepted = _accepted(hints[name]) + (" | os.PathLike[str]" if name == "weights" else "")
        parts.append("\n".join([f"    {name}: {accepted}", *lines, ""]))
    return parts[0] + "\n" + "".join(parts[1:])


def _accepted(hint: Any) -> str:
    """The type of a keyword, as it is written."""
    if hint is NoneType:
        return "None"
    if get_origin(hint) is Literal:
        return f"Literal[{', '.join(map(_quoted, get_args(hint)))}]"
    if get_origin(hint) in _ACCEPTED or hint in _ACCEPTED:
        return _ACCEPTED[get_origin(hint) or hint]
    if options := get_args(hint):
        return " | ".join(map(_accepted, options))
    name: str = hint.__name__
    return name
