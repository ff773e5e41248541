"""``zoo report``: what a model costs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.options import AsJson, Assignments, complete_spec

if TYPE_CHECKING:
    from specs.model import Model
    from zoo.reports.report import Report


def complete_device(incomplete: str) -> list[str]:
    """Devices that begin with what is typed so far."""
    from specs.device import device_names

    return [name for name in [*device_names(), "this"] if name.startswith(incomplete)]


def _quantized_sizes(spec: Model, wanted: str) -> dict[str, int]:
    """The bytes of a model's file in few bits; none for a model that cannot be exported, unless that is wanted."""
    from exporters.stored_size import stored_size
    from specs.errors import UserError

    sizes = {}
    for precision in ("int8", "int4"):
        try:
            sizes[precision] = stored_size(spec, precision)
        except UserError:
            if precision == wanted:
                raise
    return sizes


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
      zoo report llama-3-8b --batch 8 --length 4096 --precision int4 --device l4
      zoo report t5-small --symbolic
      zoo report gpt2 --set decoder.block.attention.kind=multi_query
      zoo report gpt3-175b --device h100 --device this --json
      zoo report build/t5-small --html t5.html
    """
    from cli.render import print_json
    from cli.report_tables import print_report
    from specs.device import device_names
    from zoo.reports.side import read_side

    if html is not None:
        from cli.files import check_place

        check_place(html, b"<!doctype html>", "--html")
    side = read_side(spec, assignments or ())
    model_spec = side.spec
    from zoo.reports.report import Lengths
    from zoo.reports.report import report as report_on

    lengths = Lengths.of(model_spec, batch, length, past, source_length)
    known = _quantized_sizes(model_spec, precision)
    found = report_on(model_spec, lengths, precision, devices or [*device_names(), "this"], known)
    if html is not None:
        _write_page(html, found, side.export)
    if as_json:
        print_json(found.as_dict())
    elif html is not None:
        typer.echo(html)
    else:
        print_report(found, symbolic=symbolic, depth=depth)


def _write_page(path: Path, found: Report, export: Mapping[str, Any] | None) -> None:
    from cli.files import write_whole
    from zoo.pages.report_page import report_page

    write_whole(path, report_page(found, export).encode(), "--html")
