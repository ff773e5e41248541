"""``zoo report``: the cost of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.options.export_options import complete_target, flag
from cli.options.options import (
    AsJson,
    Assignments,
    Batch,
    Depth,
    Digests,
    Length,
    ModelArgument,
    Quiet,
    Verbose,
)
from cli.terminal.option_groups import DECODING, MACHINE, RUNS, TREE


def complete_device(incomplete: str) -> list[str]:
    """Complete the names of devices."""
    from specs.files.device import device_names

    return [name for name in [*device_names(), "this"] if name.startswith(incomplete)]


def report(
    context: typer.Context,
    spec: ModelArgument,
    assignments: Assignments = None,
    batch: Batch = 1,
    length: Length = None,
    past: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Cached tokens before a decoder step.  [default: the length, or what fits in the context]",
            rich_help_panel=DECODING,
        ),
    ] = None,
    source_length: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Encoder length of an encoder-decoder, in tokens.  [default: as --length]",
            rich_help_panel=DECODING,
        ),
    ] = None,
    precision: Annotated[str, flag("precision")] = "fp16",
    target: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Runtime platform of the graphs.  [default: that of the export, or portable]",
            autocompletion=complete_target,
            rich_help_panel=RUNS,
        ),
    ] = None,
    devices: Annotated[
        list[str] | None,
        typer.Option(
            "--device",
            metavar="NAME|FILE",
            help="Device name, YAML file of a device, or `this` to measure this machine; repeatable.  [default: all]",
            autocompletion=complete_device,
            rich_help_panel=RUNS,
        ),
    ] = None,
    mesh: Annotated[
        str | None,
        typer.Option(
            metavar="dp=N,tp=N,pp=N",
            help="Report memory per device, traffic and the bound of a training step on a mesh, instead.",
            rich_help_panel=MACHINE,
        ),
    ] = None,
    fit: Annotated[
        str | None,
        typer.Option(
            metavar="train|serve",
            help="Find the smallest mesh that trains or serves the model.",
            rich_help_panel=MACHINE,
        ),
    ] = None,
    symbolic: Annotated[
        bool,
        typer.Option(
            "--symbolic",
            help="Print FLOPs and activations as formulas of B, T, P and S.",
            rich_help_panel=TREE,
        ),
    ] = False,
    depth: Depth = 3,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write an HTML page with pictures, and sliders for the sizes, instead."
        ),
    ] = None,
    digests: Digests = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Report what a model costs to run and to train.

    Lists parameters by role, FLOPs by module, memory for weights, caches and training, and lower bounds on the time per
    device, all read from the modules and their traced graph. FLOPs count matrix products, 2 m n k each; a mixture of
    experts computes only the experts that each token is routed to.

    B is the batch size, T the new tokens, P the cached tokens, and S the encoder tokens.

    \b
    Examples:
      zoo report gpt2
      zoo report llama-3-8b --batch 8 --length 4096 --precision int4
      zoo report gpt3-175b --device h100 --device this --json
      zoo report build/t5-small --html t5.html
      zoo report llama-3-70b --mesh dp=8,tp=8 --device h100 --precision bf16
    """
    from cli.options.given import given, typed
    from cli.terminal.screen import Screen

    whole = verbose or (not quiet and given(context, "symbolic", "depth"))
    screen = Screen(whole, quiet, as_json)
    from cli.options.files import check_place, write_own
    from cli.options.sizes import file_sizes
    from cli.tables.export_differences import print_changes
    from cli.tables.mesh_report import report_mesh
    from cli.tables.model_rows import title
    from cli.tables.report_screen import DEVICES, print_costs
    from cli.tables.report_tables import print_advice, print_report
    from cli.terminal.exit_status import FAILED
    from cli.terminal.progress import working
    from cli.terminal.render import print_json
    from specs.files.device import device_names
    from zoo.record.integrity import check_integrity
    from zoo.reports.side import read_side

    if html is not None:
        check_place(html, ".html", "--html")
    side = read_side(spec, assignments or ())
    model_spec = side.spec
    from zoo.pages.report_page import report_page
    from zoo.reports.lengths import Lengths
    from zoo.reports.report import report as report_on

    lengths = Lengths.of(model_spec, batch, length, past, source_length)
    if mesh is not None or fit is not None:
        report_mesh(screen, model_spec, lengths, precision, devices or (), mesh, fit)
        return
    target_name = target or (side.export.manifest.target if side.export else "portable")
    default = DEVICES if screen.rows and html is None else [*device_names(), "this"]
    with working(f"trace {model_spec.name}", quiet=screen.silent):
        sizes = file_sizes(model_spec, target_name, needed=precision in ("int8", "int4", "q4f16"))
        costs = report_on(model_spec, lengths, precision, devices or default, sizes)
        integrity = None
        if side.export is not None:
            # Only the page shows the verification, and digests tie it to the files.
            contents = digests if digests is not None or html is not None else False
            integrity = check_integrity(side.export, contents=contents)
        if html is not None:
            export = None if side.export is None or integrity is None else (side.export, integrity)
            write_own(html, report_page(costs, export).encode(), ".html", "--html")
    if as_json:
        kept = None if integrity is None else integrity.as_dict()
        intact = integrity is None or integrity.intact
        print_json({**costs.as_dict(), "passed": intact, "target": target_name, "integrity": kept})
    elif html is not None:
        title(screen, model_spec)
        screen.done(f"{html} is ready")
        screen.next(
            (typed(context, without=("html",)), "the figures here"),
            (["draw", spec, "-o", f"{model_spec.name}.svg"], "the drawing alone"),
        )
    else:
        if screen.rows:
            print_costs(screen, costs, target_name)
        elif screen.tables:
            print_report(costs, target_name, symbolic=symbolic, depth=depth)
            print_advice(model_spec, target_name, precision)
        screen.done(f"{model_spec.name} traced and counted")
        page = f"{model_spec.name}.html" if spec == model_spec.name else "report.html"
        screen.next(
            *([] if screen.tables else [(typed(context, "-v"), "all modules and devices")]),
            (typed(context, "--html", page, without=("symbolic", "depth")), "a page with sliders"),
        )
    if integrity is not None and not integrity.intact:
        print_changes(screen, side.label, integrity)
        raise typer.Exit(FAILED)
