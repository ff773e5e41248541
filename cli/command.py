"""How every command ends: with a result, or with a message and an exit status, never with a user's traceback."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from specs.errors import SpecError, UserError

FAILED = 1
"""Exit status: a check or verification failed."""
WRONG_INPUT = 2
"""Exit status: the input was wrong."""


class Program(TyperGroup):
    """The commands.  A mistake is told on stderr, or with ``--json`` as data on stdout, and the status is 2."""

    def main(self, args: Sequence[str] | None = None, **settings: Any) -> Any:  # type: ignore[override]
        given = list(sys.argv[1:] if args is None else args)
        as_json = "--json" in given
        settings["color"] = color_wanted()
        if as_json:
            settings["standalone_mode"] = False  # mistakes in the command line come here, too
        try:
            sys.exit(super().main(given, **settings))
        except typer.TyperException as error:
            _end(error.format_message(), as_json)
        except UserError as error:
            _end(error, as_json)
        except OSError as error:
            reason = error.strerror or str(error)
            # Streams have no names: of those that the program writes to, one is gone, and it may be stdout.
            _end(
                f"{error.filename}: {reason}" if error.filename else f"cannot write: {reason}",
                as_json and error.filename,
            )
        except (MemoryError, RuntimeError) as error:
            if not _is_out_of_memory(error):
                raise
            _end(_out_of_memory(), as_json)

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        result = super().invoke(ctx)
        warn_of_broken_plugins()
        return result


def _end(error: UserError | str, as_json: bool) -> NoReturn:
    with contextlib.suppress(OSError):  # nobody listens
        if as_json:
            from cli.render import print_json

            print_json(
                {"errors": error_data(error) if isinstance(error, UserError) else [{"message": error}]}
            )
        else:
            typer.secho(str(error), fg=typer.colors.RED, err=True, color=color_wanted())
    sys.exit(WRONG_INPUT)


def _is_out_of_memory(error: Exception) -> bool:
    """Whether an allocation failed: torch raises a RuntimeError for that."""
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error)


def _out_of_memory() -> str:
    from zoo.memory import available_memory, readable_bytes

    return (
        f"there is too little memory: {readable_bytes(available_memory())} are free\n"
        "  free some, run on a larger machine, or do less: --no-verify, or --weights none"
    )


def color_wanted() -> bool | None:
    """False where the environment has no colours; else None, as a terminal decides."""
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


def warn_of_broken_plugins() -> None:
    """Name every plugin that could not be loaded, where the command had kinds to look up."""
    registry = sys.modules.get("specs.registry")
    for error in registry.broken_plugins().values() if registry else ():
        typer.secho(f"warning: {error}", fg=typer.colors.YELLOW, err=True)


def error_data(error: UserError) -> list[dict[str, Any]]:
    """An error as JSON data: the parts of each problem of a spec, and the text that the terminal would show."""
    if isinstance(error, SpecError):
        return [{**problem.as_dict(), "message": problem.render()} for problem in error.problems]
    return [{"message": str(error)}]
