"""``zoo eval``: the quality of an export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.options.options import (
    AsJson,
    Assignments,
    ExportDirectory,
    ProviderName,
    Quiet,
    Tokenizer,
    Verbose,
    Weights,
    complete_spec,
)
from cli.terminal.option_groups import INPUTS, MODEL


def evaluate(
    context: typer.Context,
    directory: ExportDirectory,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="DIR|SPEC",
            help="Reference: another export, a checkpoint, a hub repository, or a spec with --weights.",
            autocompletion=complete_spec,
            show_default=False,
            rich_help_panel=MODEL,
        ),
    ] = None,
    assignments: Assignments = None,
    weights: Weights = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Inputs: UTF-8 text, token ids (.npy), arrays (.npz), an image or audio (.wav), or a directory.  "
            "[default: built-in prose; random ids for random weights]",
            show_default=False,
            rich_help_panel=INPUTS,
        ),
    ] = None,
    tokenizer: Tokenizer = None,
    provider: ProviderName = None,
    per_layer: Annotated[
        bool,
        typer.Option(
            "--per-layer", help="Measure the cost of rounding each layer alone.", show_default=False
        ),
    ] = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Measure the quality of an export on text, audio or arrays.

    Reports the perplexity of a decoder and, with --against, its KL divergence and top-token agreement. Models that return
    vectors are compared by cosine and by nearest neighbours, encoder-decoders by KL divergence and token error rate. In a
    directory of images, a text (.txt) of the same name may belong to an image.

    \b
    Examples:
      zoo eval build/smol-int8 --data book.txt
      zoo eval build/smol-int4 --against smol.yaml --weights model.gguf
      zoo eval build/minilm-int8 --against path/to/checkpoint --json
      zoo eval build/new --against build/old --data book.txt
      zoo eval build/whisper-int8 --against path/to/whisper --data recordings/
    """
    from cli.options.given import typed
    from cli.terminal.screen import Screen

    screen = Screen(verbose, quiet, as_json)
    from cli.tables.quality_screen import print_quality_rows
    from cli.tables.quality_tables import print_quality
    from cli.terminal.render import print_json
    from exporters.exported.evaluate import evaluate as judge_export
    from exporters.exported.model_source import model_source
    from exporters.runtime.exported import open_export
    from specs.base.errors import UserError

    if against is None and (weights or assignments):
        option = "--weights" if weights else "--set"
        raise UserError(
            f"{option} applies only to the spec of --against.\n  Add --against, or remove the option."
        )
    exported = open_export(directory, provider)
    other = None if against is None else model_source(against, assignments or (), weights)
    with screen.progress() as progress:
        quality = judge_export(exported, other, data, tokenizer, progress, costs=per_layer)
    if as_json:
        print_json({"name": exported.spec.name, "directory": str(directory), **quality.as_dict()})
        return
    manifest = exported.manifest
    by_layer = other is not None and other.exported is None and not per_layer
    screen.title(str(directory), "", f"{manifest.precision}, {manifest.target}")
    print_quality_rows(screen, quality)
    if screen.tables:
        print_quality(quality)
    screen.done(f"{directory} measured")
    screen.next(
        *([(typed(context, "--per-layer"), "what rounding each layer costs")] if by_layer else []),
        (["bench", str(directory)], "its speed and memory"),
    )
