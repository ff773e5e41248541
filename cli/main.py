"""``zoo``: the commands put together."""

from __future__ import annotations

import atexit
import gc

# Starting up is all imports, which make no garbage: a collector that rarely runs saves a fifth of the time.
gc.set_threshold(200_000)
atexit.register(gc.freeze)

from typing import Annotated  # noqa: E402

import typer  # noqa: E402

from cli.check import check  # noqa: E402
from cli.command import INTERRUPTED, Command  # noqa: E402
from cli.list import list_presets  # noqa: E402
from cli.params import params  # noqa: E402
from cli.schema import schema  # noqa: E402
from cli.show import show  # noqa: E402
from cli.validate import validate  # noqa: E402

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("list", cls=Command)(list_presets)
app.command("show", cls=Command)(show)
app.command("validate", cls=Command)(validate)
app.command("schema", cls=Command)(schema)
app.command("params", cls=Command)(params)
app.command("check", cls=Command)(check)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"zoo {version('zoo')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Build transformer models from specs, prove them, and export them to ONNX.

    A SPEC is the name of a preset or a YAML file. Exit status: 0 done, 1 a check or verification failed, 2 the
    input was wrong.
    """


def main() -> None:
    """Run the command line."""
    try:
        app(prog_name="zoo")
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        raise SystemExit(INTERRUPTED) from None
