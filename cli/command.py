"""How every command ends: with a result, or with a message and an exit status, never with a user's traceback."""

from __future__ import annotations

import errno
import sys
from typing import Any

import typer
from typer.core import TyperCommand

from cli.main import INTERRUPTED
from specs.errors import SpecError, UserError

FAILED = 1
"""Exit status: a check or verification failed."""
WRONG_INPUT = 2
"""Exit status: the input was wrong."""


class Command(TyperCommand):
    """A command that tells a :class:`UserError` on stderr, or with ``--json`` as data on stdout, and exits with 2."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        try:
            result = super().invoke(ctx)
            warn_of_broken_plugins()
            return result
        except UserError as error:
            if ctx.params.get("as_json"):
                from cli.render import print_json

                print_json({"errors": error_data(error)})
            else:
                typer.secho(str(error), fg=typer.colors.RED, err=True)
            raise typer.Exit(WRONG_INPUT) from None
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            typer.secho(f"cannot write: {error.strerror}", fg=typer.colors.RED, err=True)
            raise typer.Exit(WRONG_INPUT) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None


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
