"""The options of commands: short spellings of typer's, the three of every screen, and several options as one value."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
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
    """The command with the options of each parameter that is a value of options in place of the parameter.

    These are dataclasses, with an option for each field, and classes with a method ``parameters`` that returns the options.
    """
    parameters = inspect.signature(command, eval_str=True).parameters
    classes = {name: parameter.annotation for name, parameter in parameters.items()}
    options = {name: listed for name, kind in classes.items() if (listed := _options(kind)) is not None}

    @functools.wraps(command)
    def run(**values: Any) -> None:
        made = {
            name: classes[name](**{option: values.pop(option) for option in of_value})
            for name, of_value in options.items()
        }
        command(**values, **made)

    spread = [
        option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in parameters.items()
        for option in (options[name].values() if name in options else [parameter])
    ]
    run.__signature__ = inspect.Signature(spread)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in spread}
    return run


def _options(kind: Any) -> Mapping[str, inspect.Parameter] | None:
    """The options of a class as parameters by name; None for the type of a single option."""
    if not isinstance(kind, type):
        return None
    if hasattr(kind, "parameters"):
        parameters: Mapping[str, inspect.Parameter] = kind.parameters()
        return parameters
    if not dataclasses.is_dataclass(kind):
        return None
    hints = get_type_hints(kind, include_extras=True)
    fields = inspect.signature(kind).parameters
    return {name: field.replace(annotation=hints[name]) for name, field in fields.items()}
