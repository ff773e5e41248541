"""``zoo help``: the help of the program or of a command."""

from __future__ import annotations

from typing import Annotated

import typer


def help_(
    context: typer.Context,
    command: Annotated[
        str | None, typer.Argument(metavar="[COMMAND]", help="The command.", show_default=False)
    ] = None,
) -> None:
    """Show the help of a command.

    \b
    Examples:
      zoo help build
    """
    from cli.terminal.render import emit
    from specs.base.errors import UserError
    from specs.base.suggest import suggestion

    root = context.find_root()
    commands = root.command.commands  # type: ignore[attr-defined]
    if command is None:
        emit(root.get_help() + "\n")
        return
    if command not in commands:
        raise UserError(f"There is no command {command!r}\n  {suggestion(command, commands)}")
    chosen = commands[command]
    emit(chosen.get_help(chosen.context_class(chosen, info_name=command, parent=root)) + "\n")
