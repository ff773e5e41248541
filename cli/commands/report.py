"""``zoo report``: the cost of a model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options.export_options import complete_target, flag
from cli.options.options import Assignments, Batch, Depth, Digests, Length, ModelArgument
from cli.terminal.option import option, switch
from cli.terminal.option_groups import DECODING, MACHINE, RUNS, TREE
from cli.terminal.screen import Screen

if TYPE_CHECKING:
    from zoo.record.integrity import Integrity
    from zoo.record.manifest import ExportRecord
    from zoo.reports.lengths import Lengths
    from zoo.reports.report import Report
    from zoo.reports.side import Side


def complete_device(incomplete: str) -> list[str]:
    """Complete the names of devices."""
    from specs.files.device import device_names

    return [name for name in [*device_names(), "this"] if name.startswith(incomplete)]


@dataclass(frozen=True)
class ReportOptions:
    """The options of ``zoo report``."""

    batch: Batch = 1
    length: Length = None
    past: Annotated[
        int | None,
        option(
            "N",
            "Cached tokens before a decoder step.  [default: the length, or what fits in the context]",
            DECODING,
            min=0,
        ),
    ] = None
    source_length: Annotated[
        int | None,
        option(
            "N", "Encoder length of an encoder-decoder, in tokens.  [default: as --length]", DECODING, min=1
        ),
    ] = None
    precision: Annotated[str | None, flag("precision", "that of the export, or fp16")] = None
    target: Annotated[
        str | None,
        option(
            "NAME",
            "Runtime platform of the graphs.  [default: that of the export, or portable]",
            RUNS,
            autocompletion=complete_target,
        ),
    ] = None
    devices: Annotated[
        list[str] | None,
        option(
            "NAME|FILE",
            "Device name, YAML file of a device, or `this` to measure this machine; repeatable.  [default: all]",
            RUNS,
            "--device",
            autocompletion=complete_device,
        ),
    ] = None
    mesh: Annotated[
        str | None,
        option(
            "dp=N,tp=N,pp=N",
            "Report memory per device, traffic and the bound of a training step on a mesh, instead.",
            MACHINE,
        ),
    ] = None
    fit: Annotated[
        str | None, option("train|serve", "Find the smallest mesh that trains or serves the model.", MACHINE)
    ] = None
    symbolic: Annotated[
        bool, switch("--symbolic", "Print FLOPs and activations as formulas of B, T, P and S.", TREE)
    ] = False
    depth: Depth = 3
    html: Annotated[
        Path | None, option("FILE", "Write an HTML page with pictures, and sliders for the sizes, instead.")
    ] = None
    digests: Digests = None


def report(
    context: typer.Context,
    spec: ModelArgument,
    assignments: Assignments = None,
    *,
    options: ReportOptions,
    screen: Screen,
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
    from cli.options.given import given

    screen.tabulate_if(given(context, "symbolic", "depth"))
    from cli.options.files import check_place
    from zoo.reports.side import read_side

    if options.html is not None:
        check_place(options.html, ".html", "--html")
    side = read_side(spec, assignments or ())
    exported = None if side.export is None else side.export.manifest
    precision = options.precision or (exported.precision if exported else "fp16")
    from zoo.reports.lengths import Lengths

    lengths = Lengths.of(side.spec, options.batch, options.length, options.past, options.source_length)
    if options.mesh is not None or options.fit is not None:
        from cli.tables.mesh_report import report_mesh

        devices = options.devices or ()
        report_mesh(screen, side.spec, lengths, precision, devices, options.mesh, options.fit)
        return
    target = options.target or (exported.target if exported else "portable")
    costs, integrity = _measured(screen, side, lengths, target, precision, options)
    intact = integrity is None or integrity.intact
    if screen.as_json:
        from cli.terminal.render import print_json

        kept = None if integrity is None else integrity.as_dict()
        print_json({**costs.as_dict(), "passed": intact, "target": target, "integrity": kept})
    else:
        _print(context, screen, costs, target, options, side.export if intact else None)
    if integrity is not None and not intact:
        from cli.tables.export_differences import print_changes
        from cli.terminal.exit_status import FAILED

        print_changes(screen, side.label, integrity)
        raise typer.Exit(FAILED)


def _measured(
    screen: Screen, side: Side, lengths: Lengths, target: str, precision: str, options: ReportOptions
) -> tuple[Report, Integrity | None]:
    """The costs of a model and the integrity of its export, with the page written if one is wanted."""
    from cli.options.files import write_own
    from cli.options.sizes import file_sizes
    from cli.tables.report_screen import DEVICES
    from cli.terminal.progress import working
    from specs.files.device import device_names
    from zoo.pages.report_page import report_page
    from zoo.record.integrity import check_integrity
    from zoo.reports.costs import costs as count_flops
    from zoo.reports.report import report as report_on

    html = options.html
    default = DEVICES if screen.rows and html is None else [*device_names(), "this"]
    with working(f"trace {side.spec.name}", quiet=screen.silent):
        count_flops(side.spec)  # first, since the sizes take its traces
        sizes = file_sizes(side.spec, target, needed=precision in ("int8", "int4", "q4f16"))
        if side.export is not None and side.export.manifest.target == target:
            sizes[side.export.manifest.precision] = side.export.manifest.weight_bytes
        costs = report_on(side.spec, lengths, precision, options.devices or default, sizes)
        integrity = None
        if side.export is not None:
            # Only the page shows the verification, and digests tie it to the files.
            contents = options.digests if options.digests is not None or html is not None else False
            integrity = check_integrity(side.export, contents=contents)
        if html is not None:
            export = None if side.export is None or integrity is None else (side.export, integrity)
            write_own(html, report_page(costs, export).encode(), ".html", "--html")
    return costs, integrity


def _print(
    context: typer.Context,
    screen: Screen,
    costs: Report,
    target: str,
    options: ReportOptions,
    export: ExportRecord | None,
) -> None:
    """Print the costs of a model and how an intact export was verified, or where the page about them is."""
    from cli.options.given import typed, with_set
    from cli.tables.model_rows import title
    from cli.tables.report_screen import print_costs
    from cli.tables.report_tables import print_advice, print_report

    spec, reference = costs.spec, context.params["spec"]
    file = spec.name if reference == spec.name else "report"
    if options.html is not None:
        title(screen, spec)
        screen.done(f"{options.html} is ready")
        screen.next(
            (typed(context, without=("html",)), "the figures here"),
            (
                ["draw", *with_set(reference, context.params["assignments"]), "-o", f"{file}.svg"],
                "the drawing alone",
            ),
        )
        return
    if screen.rows:
        print_costs(screen, costs, target)
    elif screen.tables:
        print_report(costs, target, symbolic=options.symbolic, depth=options.depth)
        print_advice(spec, target, costs.precision)
    if export is not None:
        from cli.tables.recorded_rows import recorded_rows

        recorded_rows(screen, export)
    screen.done(f"{spec.name} traced and counted")
    screen.next(
        *([] if screen.tables else [(typed(context, "-v"), "all modules and devices")]),
        (typed(context, "--html", f"{file}.html", without=("symbolic", "depth")), "a page with sliders"),
    )
