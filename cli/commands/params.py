"""``zoo params``: the parameters of a model by module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.options.export_options import flag
from cli.options.options import Assignments, Depth, SpecArgument, Unfold
from cli.terminal.option import option
from cli.terminal.option_groups import TREE
from cli.terminal.screen import Screen

if TYPE_CHECKING:
    from zoo.reports.parameters import ParameterReport


def params(
    context: typer.Context,
    spec: SpecArgument,
    assignments: Assignments = None,
    depth: Depth = 4,
    unfold: Unfold = False,
    path: Annotated[list[str] | None, option("MODULE", "Count only this module; repeatable.", TREE)] = None,
    target: Annotated[str, flag("target")] = "portable",
    *,
    screen: Screen,
) -> None:
    """Count a model's parameters by module.

    The model is built without allocating weights. Exits with status 1 if a count differs from the one that the spec
    expects. Sizes are those of the data file that zoo export would write for --target. --json lists every module
    regardless of --depth.

    \b
    Examples:
      zoo params bert-base
      zoo params gpt2 --depth 2
      zoo params t5-small --path decoder.blocks.0
      zoo params bert-base --set encoder.layers=6 --json
    """
    from cli.options.given import given

    screen.tabulate_if(given(context, "depth", "unfold"))
    from cli.options.sizes import file_sizes
    from cli.tables.parameter_screen import print_counts
    from cli.tables.parameter_table import print_parameters
    from cli.terminal.exit_status import FAILED
    from cli.terminal.progress import working
    from cli.terminal.render import print_json
    from zoo.configs.named_model import named_model

    model_spec = named_model(spec, assignments or ()).spec
    with working(f"count {model_spec.name}", quiet=screen.silent):
        from zoo.reports.parameters import parameter_report

        report = parameter_report(model_spec)
        selected = report.select(path or ())
        sizes = file_sizes(model_spec, target)
    if screen.as_json:
        print_json({**report.as_dict(selected), "passed": report.met, "target": target, "bytes": sizes})
    elif screen.tables:
        print_parameters(report, selected, sizes, target, depth=depth, unfold=unfold)
    else:
        about = f"{report.total_parameters:,} parameters"
        screen.title(model_spec.name, about, "as expected" if report.met and report.comparisons else "")
        print_counts(screen, report, selected, sizes, target)
    if not screen.as_json:
        screen.done(f"{model_spec.name} counted")
        _print_verdict(context, screen, report)
    if not report.met:
        raise typer.Exit(FAILED)


def _print_verdict(context: typer.Context, screen: Screen, report: ParameterReport) -> None:
    """Print the failures, or what to do next."""
    from cli.options.given import typed, with_set
    from cli.tables.failures import failures_of

    if report.met:
        again = with_set(context.params["spec"], context.params["assignments"])
        screen.next(
            *([] if screen.tables else [(typed(context, "-v"), "every module")]),
            (["report", *again], "what it costs to run and to train"),
        )
    elif failures := failures_of(report):
        screen.failed(f"{len(failures)} failed:", failures)
