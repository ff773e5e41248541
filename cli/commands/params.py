"""``zoo params``: the parameters of a model by module."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.options.export_options import flag
from cli.options.options import AsJson, Assignments, Depth, SpecArgument, Unfold
from cli.terminal.option_groups import TREE


def params(
    spec: SpecArgument,
    assignments: Assignments = None,
    depth: Depth = 4,
    unfold: Unfold = False,
    path: Annotated[
        list[str] | None,
        typer.Option(metavar="MODULE", help="Count only this module; repeatable.", rich_help_panel=TREE),
    ] = None,
    target: Annotated[str, flag("target")] = "portable",
    as_json: AsJson = False,
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
    from cli.options.sizes import file_sizes
    from cli.tables.failures import print_failures
    from cli.tables.parameter_table import print_parameters
    from cli.terminal.exit_status import FAILED
    from cli.terminal.render import print_json
    from zoo.configs.named_model import named_model

    model_spec = named_model(spec, assignments or ()).spec
    from zoo.reports.parameters import parameter_report

    report = parameter_report(model_spec)
    selected = report.select(path or ())
    sizes = file_sizes(model_spec, target)
    if as_json:
        print_json({**report.as_dict(selected), "target": target, "bytes": sizes})
    else:
        print_parameters(report, selected, sizes, target, depth=depth, unfold=unfold)
        print_failures(report)
    if not report.met:
        raise typer.Exit(FAILED)
