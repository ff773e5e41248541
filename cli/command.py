"""How every command ends: with a result, or with a message and an exit status, never with a user's traceback."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Sequence
from typing import Any, NoReturn, cast

import typer
from typer.core import TyperGroup

from cli.exit_status import READER_LEFT, WRONG_INPUT
from cli.out_of_memory import is_out_of_memory
from cli.render import color_wanted, print_json, say
from specs.errors import SpecError, UserError, with_flags


class Program(TyperGroup):
    """The commands.  A mistake is told on stderr, or with ``--json`` as data on stdout, and the status is 2."""

    def main(self, args: Sequence[str] | None = None, **settings: Any) -> Any:  # type: ignore[override]
        given = list(sys.argv[1:] if args is None else args)
        as_json = "--json" in given
        # All errors come here, so that they are all printed alike: those in the command line, too.
        settings |= {"color": color_wanted(), "standalone_mode": False}
        try:
            sys.exit(super().main(given, **settings))
        except typer.TyperException as error:
            if as_json:
                _end(error.format_message(), as_json)
            say(_with_usage(error), err=True)
            sys.exit(WRONG_INPUT)
        except UserError as error:
            _end(error, as_json)
        except SystemExit as end:
            if isinstance(end.__context__, BrokenPipeError):  # which typer takes for a failure
                sys.exit(READER_LEFT)
            raise
        except OSError as error:
            if is_out_of_memory(error):
                raise
            reason = error.strerror or str(error)
            # Streams have no names: of those that the program writes to, one is gone, and it may be stdout.
            _end(
                f"{error.filename}: {reason}" if error.filename else f"cannot write: {reason}",
                as_json and error.filename,
            )

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        result = super().invoke(ctx)
        warn_of_broken_plugins()
        return result


def _with_usage(error: typer.TyperException) -> str:
    """The message with the usage of the command before it."""
    text = io.StringIO()
    cast(Any, error).show(file=text)  # typer has more than one class of errors, and all have this
    return text.getvalue().rstrip()


def _end(error: UserError | str, as_json: bool) -> NoReturn:
    with contextlib.suppress(OSError):  # nobody listens
        if as_json:
            print_json(
                {"errors": error_data(error) if isinstance(error, UserError) else [{"message": error}]}
            )
        else:
            say(error if isinstance(error, str) else with_flags(error.text), "red", err=True)
    sys.exit(WRONG_INPUT)


def warn_of_broken_plugins() -> None:
    """Name every plugin that could not be loaded, where the command had kinds to look up."""
    registry = sys.modules.get("specs.registry")
    for error in registry.broken_plugins().values() if registry else ():
        say(f"warning: {error}", "yellow", err=True)


def error_data(error: UserError) -> list[dict[str, Any]]:
    """An error as JSON data: the parts of each problem of a spec, and the text that the terminal would show."""
    if isinstance(error, SpecError):
        return [{**problem.as_dict(), "message": problem.render()} for problem in error.problems]
    return [{"message": with_flags(error.text)}]
