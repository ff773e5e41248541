"""Progress over all artefacts, on standard error: a line for each finished artefact, and in a terminal bars below."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cli.terminal.ending import end_if_asked
from cli.terminal.render import say
from specs.base.printable import printable

if TYPE_CHECKING:
    from exporters.making.make import BuildResult
    from exporters.making.plan import MakePlan
    from zoo.core.progress import Stage


@contextmanager
def make_progress(
    plan: MakePlan, *, quiet: bool
) -> Iterator[tuple[Callable[[str, Stage], None], Callable[[BuildResult], None]]]:
    """The callbacks for every stage of a build, by artefact, and for every result."""
    if quiet or not plan.stale:
        yield lambda name, stage: end_if_asked(), lambda made: end_if_asked()
        return
    finish = _finished_lines(len(plan.stale))
    if not sys.stderr.isatty():
        yield lambda name, stage: end_if_asked(), finish
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    bars = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bars:
        whole = bars.add_task("artefacts", total=len(plan.stale))
        running: dict[str, TaskID] = {}
        shown: dict[str, str] = {}

        def on_stage(name: str, stage: Stage) -> None:
            end_if_asked()
            text = printable(f"  {name}: {stage.name}")
            if name not in running:
                running[name] = bars.add_task(text, total=None)
            is_new = text != shown.get(name)
            shown[name] = text
            bars.update(
                running[name],
                description=text,
                completed=stage.done,
                total=stage.total or None,
                refresh=is_new,  # show each stage, however short
            )

        def done(made: BuildResult) -> None:
            if made.step.artefact.name in running:
                bars.remove_task(running.pop(made.step.artefact.name))
            bars.advance(whole)
            finish(made)

        yield on_stage, done


def _finished_lines(total: int) -> Callable[[BuildResult], None]:
    count = 0

    def done(made: BuildResult) -> None:
        nonlocal count
        end_if_asked()
        count += 1
        say(f"[{count}/{total}] {made.step.artefact.name}: {made.state}", err=True)

    return done
