"""The options that a user typed, as opposed to defaults, and the command line that repeats them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import typer


def given(context: typer.Context, *names: str) -> bool:
    """Whether the command line has one of some parameters, such as one that only tables depend on."""
    sources = (context.get_parameter_source(name) for name in names)
    return any(source is not None and source.name == "COMMANDLINE" for source in sources)


def typed(context: typer.Context, *added: str, without: Sequence[str] = ()) -> list[str]:
    """The command as it was typed, without some parameters and ``-v``, and with arguments added."""
    words = [str(context.info_name)]
    for parameter in context.command.params:
        name = str(parameter.name)
        if name not in (*without, "verbose") and given(context, name):
            words += _words(parameter, context.params[name])
    return [*words, *added]


def _words(parameter: Any, value: Any) -> Iterator[str]:
    values = value if isinstance(value, list | tuple) else [value]
    if parameter.param_type_name == "argument":
        yield from map(str, values)
    elif parameter.is_flag:
        yield (parameter.opts if value else parameter.secondary_opts)[0]
    else:
        for item in values:
            yield from (parameter.opts[0], str(item))


def with_set(
    reference: str, assignments: Sequence[str] | None, name: str | None = None, family: str | None = None
) -> list[str]:
    """The arguments that name a spec again: its reference, every ``--set``, ``--name`` and ``--as``."""
    changes = [part for assignment in assignments or () for part in ("--set", assignment)]
    named = [] if name is None else ["--name", name]
    return [reference, *changes, *named, *([] if family is None else ["--as", family])]
