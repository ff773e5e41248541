"""Error handling of all commands: a message and an exit status instead of a traceback."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Sequence
from typing import Any, NoReturn, cast

import typer
from typer.core import TyperGroup

from cli.terminal.command_table import GROUPS, Commands, summary
from cli.terminal.conversion import convert_on_demand
from cli.terminal.exit_status import READER_LEFT, WRONG_INPUT
from cli.terminal.out_of_memory import is_out_of_memory
from cli.terminal.render import color_wanted, print_json, say
from specs.base.errors import CombinedError, SpecError, UserError, with_flags


class Program(TyperGroup):
    """The commands.  A user error is printed to stderr, or as JSON to stdout with ``--json``; the exit status is 2."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Commands()

    def main(self, args: Sequence[str] | None = None, **settings: Any) -> Any:  # type: ignore[override]
        arguments = list(sys.argv[1:] if args is None else args)
        as_json = "--json" in arguments
        # Handle all errors here, including usage errors, so that they are printed alike.
        settings |= {"color": color_wanted(), "standalone_mode": False}
        try:
            sys.exit(super().main(arguments, **settings))
        except typer.TyperException as error:
            if as_json:
                _end(error.format_message(), as_json)
            say(_with_usage(error), err=True)
            sys.exit(WRONG_INPUT)
        except UserError as error:
            _end(error, as_json)
        except SystemExit as end:
            if isinstance(end.__context__, BrokenPipeError):  # typer reports it as a failure
                sys.exit(READER_LEFT)
            raise
        except OSError as error:
            if is_out_of_memory(error):
                raise
            reason = error.strerror or str(error)
            # Streams have no names: the closed one may be stdout.
            _end(
                f"{error.filename}: {reason}" if error.filename else f"Cannot write: {reason}",
                as_json and error.filename,
            )

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        convert_on_demand(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, summary(name).removesuffix(".")) for name in names], col_max=9)

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        result = super().invoke(ctx)
        warn_of_broken_plugins()
        return result


def _with_usage(error: typer.TyperException) -> str:
    """The message, preceded by the usage of the command."""
    text = io.StringIO()
    cast(Any, error).show(file=text)  # typer's error classes share this method
    return text.getvalue().rstrip()


def _end(error: UserError | str, as_json: bool) -> NoReturn:
    with contextlib.suppress(OSError):  # the reader may be gone
        if as_json:
            print_json(
                {"errors": error_data(error) if isinstance(error, UserError) else [{"message": error}]}
            )
        else:
            say(error if isinstance(error, str) else with_flags(error.text), "red", err=True)
    sys.exit(WRONG_INPUT)


def warn_of_broken_plugins() -> None:
    """Print a warning for every plugin that failed to load, if the command loaded plugins."""
    plugins = sys.modules.get("specs.base.plugins")
    for error in plugins.broken_plugins() if plugins else ():
        say(f"Warning: {error}", "yellow", err=True)


def error_data(error: UserError) -> list[dict[str, Any]]:
    """An error as JSON data: the fields of each problem of a spec, and the message as printed."""
    if isinstance(error, CombinedError):
        return [data for inner in error.errors for data in error_data(inner)]
    if isinstance(error, SpecError):
        return [
            {**problem.as_dict(with_flags), "message": with_flags(problem.render())}
            for problem in error.problems
        ]
    return [{"message": with_flags(error.text)}]
