"""Which options a user gave, as opposed to their defaults; and options to repeat a command with."""

from __future__ import annotations

from collections.abc import Sequence

import typer


def given(context: typer.Context, *names: str) -> bool:
    """Whether the command line has one of some parameters, such as one that only tables depend on."""
    sources = (context.get_parameter_source(name) for name in names)
    return any(source is not None and source.name == "COMMANDLINE" for source in sources)


def with_set(reference: str, assignments: Sequence[str] | None) -> list[str]:
    """The arguments that name a spec again: its reference and every ``--set``."""
    return [reference, *(part for assignment in assignments or () for part in ("--set", assignment))]
