"""Progress over all artefacts, on standard error: the live line in a terminal, else a line for each finished artefact."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cli.terminal.exit_status import end_if_asked
from cli.terminal.progress import live_line
from cli.terminal.render import say

if TYPE_CHECKING:
    from exporters.making.make import BuildResult
    from exporters.making.plan import MakePlan
    from zoo.core.progress import Stage


@contextmanager
def make_progress(
    plan: MakePlan, *, quiet: bool
) -> Iterator[tuple[Callable[[str, Stage], None], Callable[[BuildResult], None]]]:
    """The callbacks for every stage of a build, by artefact, and for every result."""
    total, finished = len(plan.stale), 0
    in_terminal = sys.stderr.isatty()
    with live_line(quiet=quiet or not total) as show:

        def on_stage(name: str, stage: Stage) -> None:
            end_if_asked()
            show(f"[{finished}/{total}] {name}: {stage.name}", stage.done, stage.total)

        def done(made: BuildResult) -> None:
            nonlocal finished
            finished += 1
            text = f"[{finished}/{total}] {made.step.artefact.name}: {made.state}"
            show(text)
            if not quiet and not in_terminal:
                say(text, err=True)

        yield on_stage, done
