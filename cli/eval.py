"""``zoo eval``: what rounding changes of what a model knows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.options import AsJson, Assignments, complete_spec


def evaluate(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="What zoo build or zoo export wrote.", show_default=False)
    ],
    against: Annotated[
        str | None,
        typer.Option(
            metavar="DIR|SPEC",
            help="Compare with another export, a preset or YAML file (with --weights), or a checkpoint.",
            autocompletion=complete_spec,
            show_default=False,
        ),
    ] = None,
    assignments: Assignments = None,
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="PATH|ORG/NAME", help="Weights of the spec that --against names.", show_default=False
        ),
    ] = None,
    text: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Inputs that the model is made for: UTF-8 text, token ids (.npy), arrays by input name (.npz), or audio "
            "(.wav, or a directory of them).  "
            "[default: a corpus of prose; for random weights random ids]",
            show_default=False,
        ),
    ] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="A tokenizer.json, the directory around it, or a GGUF file.  [default: that in DIR, or of --against]",
            show_default=False,
        ),
    ] = None,
    layers: Annotated[
        bool,
        typer.Option(
            "--layers", help="Measure what rounding each layer's weights costs alone.", show_default=False
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure how well an export does on text or audio, and how far it is from another model.

    A decoder gets its perplexity and, against a float model or another export, the KL divergence and the share of
    positions with the same top token. Models that give vectors get cosines and the share of equal nearest neighbours;
    encoder-decoders the KL divergence and the token error rate of what they say.

    \b
    Examples:
      zoo eval build/smol-int8 --text book.txt
      zoo eval build/smol-int4 --against smol.yaml --weights model.gguf --layers
      zoo eval build/minilm-int8 --against path/to/checkpoint --json
      zoo eval build/new --against build/old --text book.txt
      zoo eval build/whisper-int8 --against path/to/whisper --text recordings/
    """
    from cli.progress import stage_progress
    from cli.quality_tables import print_quality
    from cli.render import print_json
    from exporters.opened import opened
    from exporters.quality.evaluate import evaluate as judge_export
    from exporters.runtime.exported import open_export
    from specs.errors import UserError

    if against is None and (weights or assignments):
        option = "--weights" if weights else "--set"
        raise UserError(
            f"{option} applies to the spec that --against names\n  Add --against, or leave it out."
        )
    exported = open_export(directory)
    other = None if against is None else opened(against, assignments or (), weights)
    with stage_progress(quiet=as_json) as progress:
        quality = judge_export(exported, other, text, tokenizer, progress, costs=layers)
    if as_json:
        print_json({"directory": str(directory), **quality.as_dict()})
    else:
        print_quality(quality)
