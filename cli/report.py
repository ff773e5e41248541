"""``zoo report``: what a model costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.export_options import complete_target
from cli.options import AsJson, Assignments, Digests, complete_spec


def complete_device(incomplete: str) -> list[str]:
    """Devices that begin with what is typed so far."""
    from specs.device import device_names

    return [name for name in [*device_names(), "this"] if name.startswith(incomplete)]


def report(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="SPEC|DIR",
            help="A preset's name (see zoo list), a YAML file, an exported directory, or a checkpoint.",
            autocompletion=complete_spec,
            show_default=False,
        ),
    ],
    assignments: Assignments = None,
    batch: Annotated[int, typer.Option(min=1, metavar="N", help="Sequences at once.")] = 1,
    length: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Tokens of a sequence.  [default: 1024, or as many as the model takes]",
            show_default=False,
        ),
    ] = None,
    past: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Tokens in the cache before a decoder's step.  [default: as many as fit of the length]",
            show_default=False,
        ),
    ] = None,
    source_length: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Tokens of the encoder that a decoder attends to.  [default: as for the length]",
            show_default=False,
        ),
    ] = None,
    precision: Annotated[
        str,
        typer.Option(
            metavar="fp32|fp16|bf16|int8|int4",
            help="How weights are stored; caches and activations in floats.",
        ),
    ] = "fp16",
    target: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The target whose files are measured.  [default: that of the export, or portable]",
            autocompletion=complete_target,
            show_default=False,
        ),
    ] = None,
    devices: Annotated[
        list[str] | None,
        typer.Option(
            "--device",
            metavar="NAME|FILE",
            help="A device, a YAML file of one, or `this` for the machine at hand as measured; repeatable.  "
            "[default: all]",
            autocompletion=complete_device,
            show_default=False,
        ),
    ] = None,
    symbolic: Annotated[
        bool,
        typer.Option(
            "--symbolic", help="FLOPs and activations as formulas of B, T, P and S.", show_default=False
        ),
    ] = False,
    depth: Annotated[int, typer.Option(min=0, metavar="N", help="Levels of modules to show.")] = 3,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a page instead, with pictures, and sliders for the sizes.",
            show_default=False,
        ),
    ] = None,
    digests: Digests = None,
    as_json: AsJson = False,
) -> None:
    """Tell what a model costs to run and to train.

    Parameters by role, FLOPs by module, memory for weights, caches and training, and the least time that calls take on
    some devices. All is read from the model's own modules and traced graph. FLOPs are those of matrix products, 2 m n k
    each; of mixtures of experts, "active" counts the experts that tokens are sent to.

    B is the batch, T the new tokens, P the tokens in the cache, S the tokens of an encoder.

    \b
    Examples:
      zoo report gpt2
      zoo report llama-3-8b --batch 8 --length 4096 --precision int4 --target cuda --device l4
      zoo report t5-small --symbolic
      zoo report gpt2 --set decoder.block.attention.kind=multi_query
      zoo report gpt3-175b --device h100 --device this --json
      zoo report build/t5-small --html t5.html
    """
    from cli.exit_status import FAILED
    from cli.export_differences import print_changes
    from cli.files import check_place, write_own
    from cli.render import print_json, say
    from cli.report_tables import print_report
    from cli.sizes import file_sizes
    from specs.device import device_names
    from zoo.integrity import check_integrity
    from zoo.reports.side import read_side

    if html is not None:
        check_place(html, ".html", "--html")
    side = read_side(spec, assignments or ())
    model_spec = side.spec
    from zoo.pages.report_page import report_page
    from zoo.reports.report import Lengths
    from zoo.reports.report import report as report_on

    lengths = Lengths.of(model_spec, batch, length, past, source_length)
    place = target or (side.export.manifest.target if side.export else "portable")
    sizes = file_sizes(model_spec, place, needed=precision in ("int8", "int4"))
    found = report_on(model_spec, lengths, precision, devices or [*device_names(), "this"], sizes)
    integrity = None
    if side.export is not None:
        # Only the page shows the verification, which the digests bind to the files.
        contents = digests if digests is not None or html is not None else False
        integrity = check_integrity(side.export.directory, side.export.manifest, contents=contents)
    if html is not None:
        export = None if side.export is None or integrity is None else (side.export, integrity)
        write_own(html, report_page(found, export).encode(), ".html", "--html")
    if as_json:
        kept = None if integrity is None else integrity.as_dict()
        print_json({**found.as_dict(), "target": place, "integrity": kept})
    elif html is not None:
        say(str(html))
    else:
        print_report(found, place, symbolic=symbolic, depth=depth)
    if integrity is not None and not integrity.intact:
        if not as_json:
            print_changes(side.label, integrity)
        raise typer.Exit(FAILED)
