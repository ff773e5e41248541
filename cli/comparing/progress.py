"""Training progress on standard error; silent unless that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from specs.base.printable import printable

if TYPE_CHECKING:
    from zoo.training.run import Moment


@contextmanager
def training_progress(*, quiet: bool) -> Iterator[Callable[[Moment], None]]:
    """A callback for every step that shows a bar per spec, with loss, speed and time left."""
    if quiet or not sys.stderr.isatty():
        yield lambda moment: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    bars = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.3f}"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    tasks: dict[str, TaskID] = {}
    with bars:

        def show(moment: Moment) -> None:
            if moment.label not in tasks:
                tasks[moment.label] = bars.add_task(
                    printable(moment.label),
                    total=moment.steps,
                    completed=moment.step,
                    loss=moment.loss,
                    rate="",
                )
                return
            task = tasks[moment.label]
            speed = bars.tasks[task].speed
            rate = f"{speed:.1f} steps/s" if speed else ""
            bars.update(task, completed=moment.step, loss=moment.loss, rate=rate)

        yield show
