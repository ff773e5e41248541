"""``zoo bench``: speed and memory of targets, precisions and PyTorch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from cli.options.export_options import complete_target, flag
from cli.options.options import (
    Assignments,
    DraftDirectory,
    DraftTokens,
    ProviderName,
    check_draft_tokens,
    complete_spec,
)
from cli.terminal.option import option
from cli.terminal.option_groups import MACHINE, RUNS, SIZES
from cli.terminal.screen import Screen

if TYPE_CHECKING:
    from exporters.benchmark.variant import BenchModel, VariantChoice
    from exporters.benchmark.workload import WorkloadGrid

Name = TypeVar("Name", bound=str)


DRAFTED = 64
"""The number of tokens that are generated with a draft by default."""

Models = Annotated[
    list[str],
    typer.Argument(
        metavar="SPEC|DIR",
        help="Models: presets, files, checkpoints, hub repositories, or directories of exports.",
        autocompletion=complete_spec,
        show_default=False,
    ),
]


@dataclass(frozen=True)
class BenchOptions:
    """The options of ``zoo bench``."""

    targets: Annotated[
        str, option("A,B", "Targets to export each SPEC for.", RUNS, autocompletion=complete_target)
    ] = "portable"
    precisions: Annotated[str, option("A,B", "Precisions to export each SPEC in.", RUNS)] = "fp32"
    baselines: Annotated[str, option("eager,compiled", "PyTorch modes to time as well.", RUNS)] = ""
    batches: Annotated[str, option("A,B", "Batch sizes, in sequences.", SIZES)] = "1"
    lengths: Annotated[
        str,
        option("A,B", "Sequence lengths in tokens; 16-128 is a batch of ragged rows.  [default: 128]", SIZES),
    ] = ""
    pasts: Annotated[
        str, option("A,B", "Cached tokens before a timed decoder step.  [default: 128]", SIZES)
    ] = ""
    new_tokens: Annotated[int | None, option("N", "Also time the generation of N tokens.", SIZES, min=1)] = (
        None
    )
    draft: DraftDirectory = None
    draft_tokens: DraftTokens = None
    logits: Annotated[str, flag("logits")] = "all"
    threads: Annotated[
        int | None, option("N", "Number of threads.  [default: one per logical processor]", MACHINE, min=1)
    ] = None
    seconds: Annotated[
        float, option("S", "Approximate time spent on each row, in seconds.", MACHINE, min=0.01)
    ] = 2.0
    provider: ProviderName = None

    def variants(self) -> VariantChoice:
        """The exports and the modes of PyTorch to time."""
        from exporters.benchmark.variant import AGAINST, DraftChoice, VariantChoice
        from exporters.graph.precisions import PRECISIONS
        from exporters.runtime.draft import DRAFT_TOKENS
        from exporters.runtime.exported import open_export
        from exporters.target.targets import TARGETS

        modes = [_known("--baselines", name, AGAINST) for name in _names(self.baselines)]
        targets = [_known("--targets", name, [*TARGETS]) for name in _names(self.targets)]
        precisions = [_known("--precisions", name, [*PRECISIONS]) for name in _names(self.precisions)]
        check_draft_tokens(self.draft_tokens, self.draft)
        draft = None
        if self.draft is not None:
            draft = DraftChoice(open_export(self.draft, self.provider), self.draft_tokens or DRAFT_TOKENS)
        return VariantChoice(targets, precisions, self.logits, modes, draft)

    def workloads(self) -> WorkloadGrid:
        """The sizes to time them on."""
        from exporters.benchmark.workload import WorkloadGrid

        batches, pasts = _numbers("--batches", self.batches, 1), _numbers("--pasts", self.pasts, 0)
        new_tokens = self.new_tokens or (None if self.draft is None else DRAFTED)
        return WorkloadGrid(batches, tuple(_names(self.lengths)), pasts, new_tokens)


def bench(
    context: typer.Context,
    specs: Models,
    assignments: Assignments = None,
    *,
    options: BenchOptions,
    screen: Screen,
) -> None:
    """Measure the speed and memory of exports and PyTorch.

    Times encoders on whole batches, decoders on prompts and on single cached steps, and encoder-decoders up to the first
    token and on steps. Specs are exported with random weights and without verification. Each variant runs in its own
    process; variants are warmed up and timed in turn. With --draft, exports generate with and without it, from the corpus' prose if
    they have a tokenizer; other tokens than without it are a failure. Each decoder step is reported as a percentage of the
    memory-bandwidth bound: the time to read the weights and the cache once.

    \b
    Examples:
      zoo bench bert-base --baselines eager,compiled --batches 1,8
      zoo bench smollm2-135m --targets portable,cpu --precisions fp32,int4
      zoo bench build/old build/new
      zoo bench t5-small --new-tokens 64 --json
      zoo bench build/llama --draft build/llama-small
      zoo bench llama-3.2-1b --targets cuda --precisions fp16 --provider cuda
    """
    from tempfile import TemporaryDirectory

    from cli.options.given import typed
    from cli.tables.bench_tables import print_report
    from cli.terminal.exit_status import FAILED
    from cli.terminal.render import print_json
    from exporters.benchmark.bench import bench as time_all
    from exporters.benchmark.variant import referred, variants
    from exporters.target.providers import on_provider

    choice, grid = options.variants(), options.workloads()
    if options.provider is not None:
        on_provider(options.provider)  # fails before anything is exported
    models = referred(specs, assignments or ())
    _check(models, choice, grid, options)
    with TemporaryDirectory() as folder, screen.progress() as progress:
        exported = list(variants(models, choice, Path(folder), progress))
        threads = options.threads or os.cpu_count() or 1
        report = time_all(exported, grid, threads, options.seconds, options.provider, progress)
    if screen.as_json:
        print_json({"passed": not any(loaded.fault for loaded in report.loaded), **report.as_dict()})
    elif not screen.silent:
        print_report(screen, report)
        screen.done(f"{len(report.loaded)} variant{'s' * (len(report.loaded) > 1)} timed")
        compared = len(report.loaded) > 1 or options.baselines
        screen.next(
            *([] if screen.tables else [(typed(context, "-v"), "percentiles, rates and providers")]),
            *([] if compared else [(typed(context, "--baselines", "eager"), "next to PyTorch")]),
        )
    faults = [(loaded.variant.label, loaded.fault) for loaded in report.loaded if loaded.fault]
    if faults:
        screen.failed(f"{len(faults)} failed:", [(f"{label}: {fault}", "") for label, fault in faults])
        raise typer.Exit(FAILED)


def _check(
    models: Sequence[BenchModel], choice: VariantChoice, grid: WorkloadGrid, options: BenchOptions
) -> None:
    """Raise :class:`specs.base.errors.UserError` for options that do not fit the models, before anything is exported."""
    from exporters.runtime.draft import check_draft
    from specs.base.errors import UserError

    encoders = [model.spec.name for model in models if model.spec.decoder is None]
    if len(encoders) == len(models) and (options.pasts or options.new_tokens):
        option = "--pasts" if options.pasts else "--new-tokens"
        raise UserError(
            f"{option} applies only to decoders, and {encoders[0]} is an encoder.\n  Remove the option."
        )
    for model in models:
        if choice.draft is not None:
            if model.exported is None:
                raise UserError(
                    f"--draft applies only to directories of exports\n  value: {model.name}\n"
                    "  Export it first, or remove the option."
                )
            check_draft(model.exported, choice.draft.exported)
        grid.workloads(model.spec)
    if any(model.exported is None for model in models):
        choice.options()


def _names(text: str) -> list[str]:
    """The comma-separated parts without duplicates."""
    return list(dict.fromkeys(filter(None, (part.strip() for part in text.split(",")))))


def _known(option: str, name: str, known: Sequence[Name]) -> Name:
    from specs.base.errors import UserError
    from specs.base.suggest import suggestion

    for candidate in known:
        if candidate == name:
            return candidate
    raise UserError(f"{option} {name!r} is unknown\n  {suggestion(name, known)}")


def _numbers(option: str, text: str, least: int) -> tuple[int, ...]:
    from specs.base.errors import UserError

    parts = _names(text)
    if not all(part.isdecimal() and int(part) >= least for part in parts):
        raise UserError(
            f"{option} must be comma-separated whole numbers of at least {least}.\n"
            f"  value: {text!r}\n  Pass a list such as {max(1, least)},8."
        )
    return tuple(map(int, parts))
