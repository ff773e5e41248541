"""``zoo bench``: targets, precisions and PyTorch beside each other."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from cli.export_options import Logits, complete_target
from cli.options import AsJson, Assignments, complete_spec

Name = TypeVar("Name", bound=str)


def bench(
    specs: Annotated[
        list[str],
        typer.Argument(
            metavar="SPEC",
            help="A preset's name, a YAML file, or a directory that zoo export wrote.",
            autocompletion=complete_spec,
            show_default=False,
        ),
    ],
    assignments: Assignments = None,
    target: Annotated[
        str,
        typer.Option(
            metavar="A,B", help="Export each SPEC for these targets.", autocompletion=complete_target
        ),
    ] = "portable",
    precision: Annotated[str, typer.Option(metavar="A,B", help="Export it in these precisions.")] = "fp32",
    logits: Logits = "all",
    against: Annotated[
        str, typer.Option(metavar="eager,compiled", help="Run it in PyTorch, too.", show_default=False)
    ] = "",
    batch: Annotated[str, typer.Option(metavar="A,B", help="Sequences at once.")] = "1",
    length: Annotated[
        str,
        typer.Option(
            metavar="A,B",
            help="Tokens of a sequence, or a range for those of a batch: 16-128.  [default: 128]",
            show_default=False,
        ),
    ] = "",
    past: Annotated[
        str,
        typer.Option(
            metavar="A,B",
            help="Time one step of a decoder after so many tokens.  [default: 128]",
            show_default=False,
        ),
    ] = "",
    new_tokens: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Time generating so many tokens, too.", show_default=False),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Threads.  [default: one for each processor]", show_default=False
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0.01, metavar="S", help="How long to time each row of the table, about.")
    ] = 2.0,
    as_json: AsJson = False,
) -> None:
    """Time models: targets, precisions and PyTorch, all in one run.

    An encoder is timed on whole batches; a decoder on reading prompts, and on single steps after so many past tokens; an
    encoder-decoder on a text up to the first new token, and on steps. Specs are exported with random weights and without
    verification. Every variant has a process of its own; they are warmed up and take turns. Reading the weights and the
    cache once is the least that a step can take: its share of that bound says how near it comes.

    \b
    Examples:
      zoo bench bert-base --against eager,compiled --batch 1,8 --length 128,16-128
      zoo bench smollm2-135m --target portable,cpu --precision fp32,int4 --past 128,1024
      zoo bench build/old build/new
      zoo bench t5-small --new-tokens 64 --json
    """
    from tempfile import TemporaryDirectory

    from cli.bench_tables import print_report
    from cli.exit_status import FAILED
    from cli.progress import stage_progress
    from cli.render import print_json
    from exporters.benching.bench import bench as time_all
    from exporters.benching.variant import AGAINST, Choice, referred, variants
    from exporters.benching.workload import Grid
    from specs.errors import UserError

    ways = [_known("--against", name, AGAINST) for name in _names(against)]
    choice = Choice(_names(target), _names(precision), logits, ways)
    grid = Grid(_numbers("--batch", batch, 1), tuple(_names(length)), _numbers("--past", past, 0), new_tokens)
    models = referred(specs, assignments or ())
    encoders = [model.spec.name for model in models if model.spec.decoder is None]
    if len(encoders) == len(models) and (past or new_tokens):
        option = "--past" if past else "--new-tokens"
        raise UserError(f"{option} is of generating, and {encoders[0]} is an encoder\n  leave it out")
    for model in models:
        grid.workloads(model.spec)
    if any(model.exported is None for model in models):
        choice.options()  # told before anything is exported
    with TemporaryDirectory() as place, stage_progress(quiet=as_json) as progress:
        found = list(variants(models, choice, Path(place), progress))
        report = time_all(found, grid, threads or os.cpu_count() or 1, seconds, progress)
    if as_json:
        print_json(report.as_dict())
    else:
        print_report(report)
    if any(each.fault for each in report.loaded):
        raise typer.Exit(FAILED)


def _names(given: str) -> list[str]:
    """The parts between commas, each once."""
    return list(dict.fromkeys(filter(None, (part.strip() for part in given.split(",")))))


def _known(option: str, name: str, known: Sequence[Name]) -> Name:
    from specs.errors import UserError
    from specs.suggest import did_you_mean

    for each in known:
        if each == name:
            return each
    raise UserError(f"there is no {option} {name!r}: {did_you_mean(name, known)}")


def _numbers(option: str, given: str, least: int) -> tuple[int, ...]:
    from specs.errors import UserError

    parts = _names(given)
    if not all(part.isdecimal() and int(part) >= least for part in parts):
        raise UserError(
            f"{option} must be whole numbers from {least} on, with commas between\n"
            f"  value: {given!r}\n  {max(1, least)},8 would work"
        )
    return tuple(map(int, parts))
