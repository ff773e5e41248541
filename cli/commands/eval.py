"""``zoo eval``: the quality of an export."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options.options import (
    Assignments,
    DraftDirectory,
    DraftTokens,
    ExportDirectory,
    ProviderName,
    Tokenizer,
    Weights,
    check_draft_tokens,
    complete_spec,
)
from cli.terminal.option import option, switch
from cli.terminal.option_groups import INPUTS, MODEL
from cli.terminal.screen import Screen

if TYPE_CHECKING:
    from exporters.quality.quality import Quality
    from exporters.runtime.exported import Exported


@dataclass(frozen=True)
class EvaluationOptions:
    """The options of ``zoo eval``."""

    against: Annotated[
        str | None,
        option(
            "DIR|SPEC",
            "Reference: another export, a checkpoint, a hub repository, or a spec with --weights.",
            MODEL,
            autocompletion=complete_spec,
        ),
    ] = None
    assignments: Assignments = None
    weights: Weights = None
    data: Annotated[
        Path | None,
        option(
            "FILE",
            "Inputs: UTF-8 text, token ids (.npy), arrays (.npz), an image or audio (.wav), or a directory.  "
            "[default: built-in prose; random ids for random weights]",
            INPUTS,
        ),
    ] = None
    tokenizer: Tokenizer = None
    draft: DraftDirectory = None
    draft_tokens: DraftTokens = None
    provider: ProviderName = None
    per_layer: Annotated[bool, switch("--per-layer", "Measure the cost of rounding each layer alone.")] = (
        False
    )


def evaluate(
    context: typer.Context, directory: ExportDirectory, options: EvaluationOptions, screen: Screen
) -> None:
    """Measure the quality of an export on text, audio or arrays.

    Reports the perplexity of a decoder and, with --against, its KL divergence and top-token agreement. Models that return
    vectors are compared by cosine and by nearest neighbours, encoder-decoders by KL divergence and token error rate. In a
    directory of images, a text (.txt) of the same name may belong to an image. With --draft, the figures predict what a
    draft brings: the accepted share of its tokens, and the tokens that each call of the model gives.

    \b
    Examples:
      zoo eval build/smol-int8 --data book.txt
      zoo eval build/smol-int4 --against smol.yaml --weights model.gguf
      zoo eval build/minilm-int8 --against path/to/checkpoint --json
      zoo eval build/new --against build/old --data book.txt
      zoo eval build/llama --draft build/llama-small --data book.txt
      zoo eval build/whisper-int8 --against path/to/whisper --data recordings/
    """
    from cli.options.given import typed
    from exporters.exported.evaluate import evaluate as judge_export
    from exporters.exported.model_source import model_source
    from exporters.runtime.exported import open_export
    from specs.base.errors import UserError

    if options.draft is not None and (options.against or options.per_layer):
        option = "--against" if options.against else "--per-layer"
        raise UserError(f"--draft and {option} are mutually exclusive.\n  Use one of them at a time.")
    if options.against is None and (options.weights or options.assignments):
        option = "--weights" if options.weights else "--set"
        raise UserError(
            f"{option} applies only to the spec of --against.\n  Add --against, or remove the option."
        )
    check_draft_tokens(options.draft_tokens, options.draft)
    exported = open_export(directory, options.provider)
    if options.draft is not None:
        _predict_draft(directory, exported, options, screen)
        return
    other = (
        None
        if options.against is None
        else model_source(options.against, options.assignments or (), options.weights)
    )
    with screen.progress() as progress:
        quality = judge_export(
            exported, other, options.data, options.tokenizer, progress, costs=options.per_layer
        )
    by_layer = other is not None and other.exported is None and not options.per_layer
    per_layer = [(typed(context, "--per-layer"), "what rounding each layer costs")] if by_layer else []
    steps = [*per_layer, (["bench", str(directory)], "its speed and memory")]
    _show(screen, directory, exported, quality, f"{directory} measured", steps)


def _predict_draft(directory: Path, exported: Exported, options: EvaluationOptions, screen: Screen) -> None:
    """Print the accepted share of a draft's tokens on a text."""
    from exporters.exported.evaluate import predict_draft
    from exporters.runtime.draft import DRAFT_TOKENS
    from exporters.runtime.exported import open_export

    assert options.draft is not None
    count = options.draft_tokens or DRAFT_TOKENS
    draft = open_export(options.draft, options.provider)
    with screen.progress() as progress:
        quality = predict_draft(exported, draft, count, options.data, options.tokenizer, progress)
    more = [] if options.draft_tokens is None else ["--draft-tokens", str(count)]
    steps = [(["run", str(directory), "--draft", str(options.draft), *more], "the speed")]
    _show(screen, directory, exported, quality, f"{options.draft} measured as a draft of {directory}", steps)


def _show(
    screen: Screen,
    directory: Path,
    exported: Exported,
    quality: Quality,
    done: str,
    steps: list[tuple[list[str], str]],
) -> None:
    """Print the figures of an export, what was done, and the next steps."""
    from cli.tables.quality_screen import print_quality_rows
    from cli.tables.quality_tables import print_quality
    from cli.terminal.render import print_json

    if screen.as_json:
        print_json({"name": exported.spec.name, "directory": str(directory), **quality.as_dict()})
        return
    manifest = exported.manifest
    screen.title(str(directory), "", f"{manifest.precision}, {manifest.target}")
    print_quality_rows(screen, quality)
    if screen.tables:
        print_quality(quality)
    screen.done(done)
    screen.next(*steps)
