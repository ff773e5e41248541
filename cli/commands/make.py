"""``zoo make``: bring the artefacts of a zoo file up to date."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options.options import Jobs
from cli.terminal.option import option, switch
from cli.terminal.option_groups import ACTION
from cli.terminal.screen import Screen
from specs.files.zoo_file import ZOO_FILE

if TYPE_CHECKING:
    from exporters.making.make import BuildResult
    from exporters.making.plan import MakePlan

ZOO_SUFFIXES = (".yaml", ".yml")

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FILE] [NAME]...",
        help="A zoo file, or a directory with a zoo.yaml, and the models, groups or artefacts to make.  "
        "[default: zoo.yaml, all models]",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class MakeOptions:
    """The options of ``zoo make``."""

    plan_only: Annotated[
        bool, switch("--plan", "Print what would be built and why, and build nothing.", ACTION)
    ] = False
    check: Annotated[
        bool,
        switch("--check", "Build nothing; exit with status 1 if an artefact or the lock is stale.", ACTION),
    ] = False
    jobs: Jobs = 1
    executor: Annotated[str, option("local|ray|slurm", "Where builds run.", ACTION, "--executor")] = "local"
    update: Annotated[
        bool, switch("--update", "Move hub repositories from the locked commit to the newest one.", ACTION)
    ] = False


def make(names: Names = None, *, options: MakeOptions, screen: Screen) -> None:
    """Build the artefacts of a zoo file that are not up to date.

    A zoo file names models, and the targets, precisions and layouts wanted of each. An artefact is rebuilt when its spec,
    weights, options or tool versions change, and otherwise left alone or restored from the cache. A failed build stops no
    other, and an interrupted run goes on where it stopped. zoo.lock records what everything was built from.

    Exit status: 0 all artefacts are current, 1 one is stale (--check) or could not be built, 2 the zoo file is wrong.

    \b
    Examples:
      zoo make
      zoo make --plan
      zoo make models/zoo.yaml gpt2 minilm/cpu-int8 --jobs 2
      zoo make --check
      zoo make --executor ray
    """
    from cli.making.output import print_failures, print_made
    from cli.making.progress import make_progress
    from cli.terminal.exit_status import FAILED
    from cli.terminal.render import print_json
    from exporters.making.artefacts import read_zoo
    from exporters.making.cache import Cache, cache_limit
    from exporters.making.executors import executor_of
    from exporters.making.make import make as make_artefacts
    from exporters.making.plan import make_plan

    path, chosen = zoo_path(names or [])
    cache, limit = Cache.default(), cache_limit()
    runner = executor_of(options.executor, options.jobs)
    plan = make_plan(read_zoo(path), chosen, cache, update=options.update)
    if options.plan_only or options.check:
        _show_plan(screen, plan, names or [], checked=options.check)
        return
    made: list[BuildResult] = []
    with make_progress(plan, quiet=screen.silent) as (on_stage, done):
        for result in make_artefacts(plan, cache, runner, on_stage, limit):
            made.append(result)
            done(result)
    failed = [result for result in made if result.state == "failed"]
    if screen.as_json:
        data = _plan_data(plan)
        print_json({"passed": not failed, **data, "made": [result.as_dict() for result in made]})
    else:
        print_made(screen, plan, made)
        if not failed:
            first = str(plan.steps[0].artefact.directory) if plan.steps else ""
            screen.next(
                (["catalog", *([] if path == Path(ZOO_FILE) else [str(path)])], "a page of all artefacts"),
                *([(["verify", first], "verify an artefact again")] if first else []),
            )
        print_failures(screen, made)
    if failed:
        raise typer.Exit(FAILED)


def _show_plan(screen: Screen, plan: MakePlan, names: list[str], *, checked: bool) -> None:
    """Print the plan of the artefacts with some names; exit with status 1 if it was to be ``checked`` and is stale."""
    from cli.making.output import print_plan
    from cli.terminal.exit_status import FAILED
    from cli.terminal.render import print_json

    if screen.as_json:
        print_json({**({"passed": not plan.unlocked} if checked else {}), **_plan_data(plan)})
    else:
        print_plan(screen, plan, checked=checked)
        if plan.stale and not checked:
            screen.next((["make", *names], "build them"))
    if checked and plan.unlocked:
        raise typer.Exit(FAILED)


def zoo_path(names: list[str]) -> tuple[Path, list[str]]:
    """The zoo file among the arguments, or else zoo.yaml here; and the names after it."""
    if names and (names[0].endswith(ZOO_SUFFIXES) or Path(names[0], ZOO_FILE).is_file()):
        first = Path(names[0])
        return first / ZOO_FILE if first.is_dir() else first, names[1:]
    return Path(ZOO_FILE), names


def _plan_data(plan: MakePlan) -> dict[str, object]:
    return {
        "zoo": str(plan.zoo.path),
        "current": not plan.unlocked,
        "steps": [step.as_dict() for step in plan.steps],
    }
