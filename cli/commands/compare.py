"""``zoo compare``: the same short training for several specs."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options.default_directory import BUILD
from cli.options.options import Assignments, Batch, Force, Jobs, SpecArguments
from cli.terminal.option import option
from cli.terminal.option_groups import MODEL, OUTPUT, TASK, TRAINING
from cli.terminal.screen import Screen

if TYPE_CHECKING:
    from zoo.training.comparison import TrainingComparison
    from zoo.training.contender import Contender

_KEPT = BUILD / "compare"
_BETWEEN_ASSIGNMENTS = re.compile(r"\s+(?=[\w.\[\]-]+=)")


def complete_task(incomplete: str) -> list[str]:
    """Complete the names of tasks."""
    from zoo.training.task_names import TASKS

    return [name for name in TASKS if name.startswith(incomplete)]


@dataclass(frozen=True)
class CompareOptions:
    """The options of ``zoo compare``."""

    variants: Annotated[
        list[str] | None,
        option(
            "PATH=VALUE...",
            "Add a variant of the first SPEC; separate several changes by spaces; repeatable.",
            MODEL,
            "--with",
        ),
    ] = None
    assignments: Assignments = None
    num_layers: Annotated[int | None, option("N", "Keep N layers, or one of each kind.", MODEL, min=1)] = None
    width: Annotated[
        int | None, option("N", "Scale every model to this width, with fewer heads.", MODEL, min=8)
    ] = None
    task: Annotated[
        str | None,
        option(
            "NAME",
            "Task: copy, reverse, recall or addition; with --corpus, next-byte or masked-byte.  "
            "[default: reverse, or next-byte with --corpus]",
            TASK,
            autocompletion=complete_task,
        ),
    ] = None
    corpus: Annotated[
        Path | None, option("FILE", "Train on the bytes of a file; the last tenth is held out.", TASK)
    ] = None
    task_length: Annotated[
        int | None,
        option(
            "N",
            "Task length, in symbols, keys, digits or bytes.  [default: 8; recall and addition 4, --corpus 64]",
            TRAINING,
            min=1,
        ),
    ] = None
    steps: Annotated[int, option("N", "Number of training steps.", TRAINING, min=1)] = 300
    batch: Batch = 32
    rate: Annotated[float, option("RATE", "Peak learning rate.", TRAINING, "--lr")] = 3e-3
    seed: Annotated[int, option("N", "Seed for weights, data and dropout.", TRAINING)] = 0
    jobs: Jobs = 1
    output: Annotated[
        list[Path] | None,
        option(
            "FILE",
            "Also write the loss curves: .png, .svg, .html or .json; repeatable.",
            OUTPUT,
            "--output",
            "-o",
        ),
    ] = None
    force: Force = False


def compare(
    context: typer.Context,
    specs: SpecArguments,
    options: CompareOptions,
    screen: Screen,
) -> None:
    """Train several specs on the same small task and compare how they learn.

    Every spec trains on the same data in the same order, from weights drawn with the same seed by its own recipe. The task
    sets the vocabulary and the head: decoders predict the answer token by token, encoder-decoders generate it from the
    question, encoders fill in masks. Use --num-layers 4 --width 128 to scale published models down.

    A decoder that can see its own answers is reported, with exit status 1. Results are saved in build/compare, from which
    interrupted training resumes; --force trains anew and replaces them. With --jobs, several processes train a model each, with the same results; GPUs are
    taken in turn.

    \b
    Examples:
      zoo compare tiny-gpt --with position.kind=rope --with position.kind=none
      zoo compare gpt2 llama-3-8b --num-layers 4 --width 128
      zoo compare tiny-gpt t5-small bert-tiny --width 64 --jobs 3
      zoo compare tiny-gpt nano-gpt --corpus book.txt --steps 1000
    """
    from cli.comparing.output import SUFFIXES, write_output
    from cli.options.files import check_outputs
    from cli.options.given import typed
    from cli.tables.compare_tables import print_comparison, warnings
    from cli.terminal.exit_status import FAILED
    from cli.terminal.render import print_json, print_written

    _check(options)
    check_outputs(options.output or (), SUFFIXES)
    comparison = _trained(
        screen, _contenders(specs, options.assignments or (), options.variants or ()), options
    )
    for path in options.output or ():
        write_output(path, comparison)
    if screen.as_json:
        print_json(comparison.as_dict())
    elif not screen.silent:
        print_comparison(screen, comparison)
        kept = sum(result.kept for result in comparison.results)
        reused = f" ({kept} from saved results, --force retrains)" if kept else ""
        print_written(options.output)
        count = len(comparison.results)
        screen.done(f"{count} model{'' if count == 1 else 's'} compared{reused}")
        screen.next(
            (typed(context, "--steps", str(3 * options.steps), without=("steps",)), "train for longer"),
            *([] if options.output else [(typed(context, "-o", "curves.html"), "curves as a page")]),
        )
    if messages := warnings(comparison):
        screen.failed("\n".join(messages))
    if not comparison.sound:
        raise typer.Exit(FAILED)


def _check(options: CompareOptions) -> None:
    """Raise :class:`specs.base.errors.UserError` for a learning rate out of range, and for a start by torchrun."""
    from specs.base.errors import UserError

    if not 0 < options.rate < 1e3:
        raise UserError(
            f"--lr must be between 0 and 1000.\n  value: {options.rate:g}\n  Pass a rate such as 0.003."
        )
    if (ranks := int(os.environ.get("WORLD_SIZE", "1"))) > 1 and "TORCHELASTIC_RUN_ID" in os.environ:
        raise UserError(
            f"zoo compare must be started once, without torchrun\n  value: {ranks} processes\n"
            f"  Pass --jobs {ranks}, which starts a process for each model."
        )


def _trained(screen: Screen, named: Sequence[Contender], options: CompareOptions) -> TrainingComparison:
    """The comparison of some specs, each trained or read from what was kept."""
    from cli.comparing.progress import training_progress
    from zoo.training.comparison import compare, contenders
    from zoo.training.contender import Contender
    from zoo.training.settings import Settings
    from zoo.training.shrinking import shrunk
    from zoo.training.task_names import NEXT_BYTE, REVERSE
    from zoo.training.tasks import find_task

    name = options.task or (NEXT_BYTE if options.corpus else REVERSE)
    task = find_task(name, options.corpus, options.task_length, [contender.spec for contender in named])
    small = [
        Contender(contender.label, shrunk(contender.spec, options.num_layers, options.width))
        for contender in named
    ]
    fit = contenders(small, task, options.jobs)
    settings = Settings(options.steps, options.batch, options.rate, options.seed)
    with training_progress(quiet=screen.silent) as progress:
        return compare(fit, task, settings, _KEPT, progress, fresh=options.force, jobs=options.jobs)


def _contenders(
    references: Sequence[str], assignments: Sequence[str], variants: Sequence[str]
) -> list[Contender]:
    """The specs in the order given, then the variants of the first; equal labels are numbered."""
    from zoo.configs.named_model import named_model
    from zoo.training.contender import Contender

    contenders = [
        Contender(_label(reference), named_model(reference, assignments).spec) for reference in references
    ]
    for variant in variants:
        changes = _BETWEEN_ASSIGNMENTS.split(variant.strip())
        contenders.append(
            Contender(" ".join(changes), named_model(references[0], [*assignments, *changes]).spec)
        )
    labels = [contender.label for contender in contenders]
    return [
        contender
        if labels.count(contender.label) == 1
        else Contender(f"{contender.label} ({labels[: i + 1].count(contender.label)})", contender.spec)
        for i, contender in enumerate(contenders)
    ]


def _label(reference: str) -> str:
    """The preset's name, or the file's without its suffix."""
    return Path(reference).stem if reference.endswith((".yaml", ".yml")) else reference
