"""The Typer application and its global options."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.terminal.command import Program
from cli.terminal.render import say

app = typer.Typer(
    cls=Program,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        say(f"zoo {version('zoo')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", "-V", callback=_print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Build transformer models from specs, verify them, and export them to ONNX.

    SPEC is a preset, a YAML file, a checkpoint (its directory or GGUF file), or a hub repository (ORG/NAME). Every command
    takes --json, which prints its result as JSON.

    Exit status: 0 success, 1 a check or verification failed, 2 invalid input, 129 hangup, 130 interrupted, 141 broken
    pipe, 143 terminated.

    \b
    Examples:
      zoo list
      zoo build bert-base
      zoo build bert-base --set position.kind=rope
      zoo export path/to/checkpoint
    """
