"""The application: the commands put together."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.attend import attend
from cli.bench import bench
from cli.build import build
from cli.check import check
from cli.command import Program
from cli.compare import compare
from cli.convert import convert
from cli.diff import diff
from cli.draw import draw
from cli.eval import evaluate
from cli.export import export
from cli.import_ import import_checkpoint
from cli.list import list_presets
from cli.params import params
from cli.render import say
from cli.report import report
from cli.run import run
from cli.schema import schema
from cli.show import show
from cli.validate import validate

app = typer.Typer(
    cls=Program,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("build")(build)
app.command("params")(params)
app.command("check")(check)
app.command("report")(report)
app.command("draw")(draw)
app.command("export")(export)
app.command("diff")(diff)
app.command("run")(run)
app.command("attend")(attend)
app.command("eval")(evaluate)
app.command("bench")(bench)
app.command("compare")(compare)
app.command("import")(import_checkpoint)
app.command("convert")(convert)
app.command("validate")(validate)
app.command("show")(show)
app.command("list")(list_presets)
app.command("schema")(schema)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        say(f"zoo {version('zoo')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Build transformer models from specs, prove them, and export them to ONNX.

    A SPEC is the name of a preset or a YAML file.

    Exit status: 0 done, 1 a check or verification failed, 2 the input was wrong, 129 hung up, 130 interrupted, 141 the
    reader of the output left, 143 terminated.

    \b
    Examples:
      zoo list
      zoo build bert-base
      zoo build bert-base --set position.kind=rope
      zoo params my-model.yaml
    """
