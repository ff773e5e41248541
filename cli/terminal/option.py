"""The options of commands: short spellings of typer's, the three of every screen, and several options as one value."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer

from cli.terminal.option_groups import OUTPUT


def option(metavar: str | None, help: str, group: str = OUTPUT, *flags: str, **settings: Any) -> Any:
    """An option that takes a value, in a group of the help; its flag is its name unless ``flags`` are given."""
    return typer.Option(*flags, metavar=metavar, help=help, rich_help_panel=group, **settings)


def switch(flag: str, help: str, group: str = OUTPUT, *others: str) -> Any:
    """An option that is on where its flag is given."""
    return typer.Option(flag, *others, help=help, rich_help_panel=group)


AsJson = Annotated[bool, switch("--json", "Print the result as JSON.")]
Verbose = Annotated[bool, switch("--verbose", "Print all tables.", OUTPUT, "-v")]
Quiet = Annotated[bool, switch("--quiet", "Print failures only.", OUTPUT, "-q")]


def with_values(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each field of its parameters that are dataclasses, in place of the parameter."""
    parameters = inspect.signature(command, eval_str=True).parameters
    classes = {
        name: parameter.annotation
        for name, parameter in parameters.items()
        if isinstance(parameter.annotation, type) and dataclasses.is_dataclass(parameter.annotation)
    }
    fields = {name: _parameters(kind) for name, kind in classes.items()}

    @functools.wraps(command)
    def run(**values: Any) -> None:
        made = {
            name: kind(**{field: values.pop(field) for field in fields[name]})
            for name, kind in classes.items()
        }
        command(**values, **made)

    spread = [
        field.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in parameters.items()
        for field in (fields[name].values() if name in fields else [parameter])
    ]
    run.__signature__ = inspect.Signature(spread)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in spread}
    return run


def _parameters(kind: type) -> dict[str, inspect.Parameter]:
    """The fields of a dataclass as parameters."""
    hints = get_type_hints(kind, include_extras=True)
    parameters = inspect.signature(kind).parameters
    return {name: parameter.replace(annotation=hints[name]) for name, parameter in parameters.items()}
