"""``zoo compare``: whether specs learn, side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.default_directory import BUILD
from cli.options import AsJson, Assignments, SpecArguments

if TYPE_CHECKING:
    from zoo.training.contender import Contender

_KEPT = BUILD / "compare"
_BETWEEN_ASSIGNMENTS = re.compile(r"\s+(?=[\w.\[\]-]+=)")


def complete_task(incomplete: str) -> list[str]:
    """Tasks that begin with what is typed so far."""
    from zoo.training.names import TASKS

    return [name for name in TASKS if name.startswith(incomplete)]


def compare(
    specs: SpecArguments,
    variants: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="PATH=VALUE...",
            help="One more: the first SPEC with this changed, as by --set; several changes with spaces between; repeatable.",
            show_default=False,
        ),
    ] = None,
    assignments: Assignments = None,
    task: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="copy, reverse, recall or addition; of a text: next-byte or masked-byte.  "
            "[default: reverse, or next-byte with --text]",
            autocompletion=complete_task,
            show_default=False,
        ),
    ] = None,
    text: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Learn from the bytes of a file; its last tenth is held out.",
            show_default=False,
        ),
    ] = None,
    length: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Symbols, keys or numbers of a passage, or bytes of a text.  [default: 8; of recall and addition 4, of a text 64]",
            show_default=False,
        ),
    ] = None,
    layers: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Shrink every stack to so many layers.", show_default=False),
    ] = None,
    width: Annotated[
        int | None,
        typer.Option(
            min=8,
            metavar="N",
            help="Make every model so wide, in proportion, with fewer heads.",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, metavar="N", help="Steps of training.")] = 300,
    batch: Annotated[int, typer.Option(min=1, metavar="N", help="Passages in a step.")] = 32,
    rate: Annotated[float, typer.Option("--lr", metavar="RATE", help="The highest learning rate.")] = 3e-3,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of weights, passages and dropout.")] = 0,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the curves, too: .png, .svg, .html or .json; repeatable.",
            show_default=False,
        ),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Train anew what was trained before.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train several specs alike, and show which of them learns.

    Every spec learns the same passages in the same order, from weights of the same seed, by its own recipe. The task sets
    vocabulary and head; a decoder predicts the answer token by token, an encoder-decoder says it after reading the question, an
    encoder fills it in where masks stand. Published models are large: --layers 4 --width 128 makes them small.

    Before it is trained, a decoder is tried for seeing its own answers; one that does is named, and the exit status is 1. What is
    trained is kept in build/compare: an interrupted training goes on from there.

    \b
    Examples:
      zoo compare tiny-gpt --with position.kind=rope --with position.kind=none
      zoo compare gpt2 llama-3-8b t5-small --layers 4 --width 128 --task recall
      zoo compare tiny-gpt --set decoder.layers=12 --with decoder.block.residual.kind=none
      zoo compare tiny-gpt nano-gpt --text book.txt --steps 1000 -o curves.png
    """
    from cli.compare_output import SUFFIXES, write_output
    from cli.compare_progress import training_progress
    from cli.compare_tables import print_comparison
    from cli.exit_status import FAILED
    from cli.files import check_outputs
    from cli.render import print_json, print_written
    from specs.errors import UserError
    from zoo.training.names import NEXT_BYTE, REVERSE

    if not 0 < rate < 1e3:
        raise UserError(f"--lr must be above 0 and finite\n  value: {rate:g}\n  0.003 would work")
    check_outputs(output or (), SUFFIXES)
    named = _contenders(specs, assignments or (), variants or ())
    from zoo.training.comparison import compare as train_all
    from zoo.training.comparison import contenders
    from zoo.training.contender import Contender
    from zoo.training.settings import Settings
    from zoo.training.shrinking import shrunk
    from zoo.training.tasks import find_task

    chosen = find_task(task or (NEXT_BYTE if text else REVERSE), text, length, [each.spec for each in named])
    small = [Contender(each.label, shrunk(each.spec, layers, width)) for each in named]
    fit = contenders(small, chosen)
    settings = Settings(steps, batch, rate, seed)
    with training_progress(quiet=as_json) as progress:
        found = train_all(fit, chosen, settings, _KEPT, progress, fresh=fresh)
    for path in output or ():
        write_output(path, found)
    if as_json:
        print_json(found.as_dict())
    else:
        print_comparison(found)
        print_written(output)
    if not found.sound:
        raise typer.Exit(FAILED)


def _contenders(
    references: Sequence[str], assignments: Sequence[str], variants: Sequence[str]
) -> list[Contender]:
    """The specs that were named, then the variants of the first; what is called alike gets a number."""
    from specs.load import load
    from zoo.training.contender import Contender

    found = [Contender(_label(reference), load(reference, assignments)) for reference in references]
    for variant in variants:
        changes = _BETWEEN_ASSIGNMENTS.split(variant.strip())
        found.append(Contender(" ".join(changes), load(references[0], [*assignments, *changes])))
    labels = [each.label for each in found]
    return [
        each
        if labels.count(each.label) == 1
        else Contender(f"{each.label} ({labels[: i + 1].count(each.label)})", each.spec)
        for i, each in enumerate(found)
    ]


def _label(reference: str) -> str:
    """A preset's name, or that of a file without what it ends in."""
    return Path(reference).stem if reference.endswith((".yaml", ".yml")) else reference
