"""The options of an export as command-line flags, generated from :mod:`specs.files.export_options`."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from cli.options.options import complete_provider
from cli.terminal.command_help import LISTED
from cli.terminal.option import option
from cli.terminal.option_groups import OUTPUT
from specs.base.descriptions import field_descriptions
from specs.base.errors import option_name, with_flags
from specs.base.plugins import plugin_entries
from specs.base.registry import load_plugins
from specs.files.export_options import OptionTable, choices_of, default_of, mark_of

_PLAIN = (bool, int, float)
"""The types that typer converts; the values of other options are strings, which the options check themselves."""


def _listed(option: str, table: str, incomplete: str) -> list[str]:
    """The names of a table of rows that packages add to; the table itself is read only if a package may have done so."""
    names = mark_of(option).names
    module, _, attribute = table.partition(":")
    if module in sys.modules or plugin_entries():
        load_plugins()
        names = (*getattr(importlib.import_module(module), attribute),)
    return [name for name in names if name.startswith(incomplete)]


def complete_target(incomplete: str) -> list[str]:
    """Complete the names of targets."""
    return _listed("target", "exporters.target.targets:TARGETS", incomplete)


def complete_layout(incomplete: str) -> list[str]:
    """Complete the names of layouts."""
    return _listed("layout", "exporters.layouts:LAYOUTS", incomplete)


def complete_engine(incomplete: str) -> list[str]:
    """Complete the names of engines."""
    from exporters.verification.engines.find import engines_here

    return [engine.name for engine in engines_here() if engine.name.startswith(incomplete)]


_COMPLETIONS: dict[str, Callable[[str], list[str]]] = {
    "target": complete_target,
    "layout": complete_layout,
    "engines": complete_engine,
    "provider": complete_provider,
}

_OPEN = frozenset({"weights"})
"""The options whose default depends on more than the option."""

Output = Annotated[
    Path | None,
    option(
        "DIR",
        "Output directory; only an earlier export in it is replaced.  "
        "[default: build/NAME and the options, such as build/NAME-int8-cpu]",
        OUTPUT,
        "--output",
        "-o",
    ),
]


def flag(name: str, absent: str = "") -> Any:
    """The typer option of one option of an export; ``absent`` says what a command does without it, if that is not the default."""
    default, text = None if absent else default_of(name), field_descriptions(OptionTable)[name]
    meaning, _, otherwise = text.partition(" Default: ")
    otherwise = absent or otherwise
    flags = with_flags(option_name(name))
    return option(
        _metavar(name),
        f"{meaning}  [default: {otherwise.removesuffix('.')}]" if otherwise else meaning,
        mark_of(name).group,
        f"{flags}/{with_flags(option_name(name, False))}" if default is True else flags,
        autocompletion=_COMPLETIONS.get(name),
        show_default=bool(default) or default == 0,
    )


def _metavar(name: str) -> str | None:
    choices, mark = choices_of(name), mark_of(name)
    if mark.names:
        return LISTED
    if choices or mark.metavar:
        return mark.metavar or "|".join(map(str, choices))
    return None if type(default_of(name)) is bool else "N"


@functools.cache
def _hints() -> Mapping[str, Any]:
    return get_type_hints(OptionTable)


def _type(name: str) -> Any:
    """The type that typer reads the values of an option as."""
    hint = _hints()[name]
    if _repeatable(name):
        return list[str] | None
    optional = type(None) in get_args(hint) or name in _OPEN
    kinds = {type(default_of(name)), *get_args(hint), *map(type, choices_of(name))}
    plain = next((kind for kind in _PLAIN if kind in kinds), str)
    return plain | None if optional else plain


def _repeatable(name: str) -> bool:
    """Whether an option takes several values, each with a flag of its own."""
    return get_origin(_hints()[name]) is tuple


class ExportFlags(dict[str, Any]):
    """The options of an export that are set, by name; a command that takes them has a flag for each option."""

    def __init__(self, **values: Any) -> None:
        super().__init__({name: value for name, value in values.items() if value is not None})

    @classmethod
    def parameters(cls) -> dict[str, inspect.Parameter]:
        """A parameter for each option."""
        return {name: _parameter(name) for name in OptionTable.model_fields}


def _parameter(name: str) -> inspect.Parameter:
    annotation: Any = Annotated[_type(name), flag(name)]
    default = None if name in _OPEN or _repeatable(name) else default_of(name)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
