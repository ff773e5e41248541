"""Progress bars on standard error; silent unless that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cli.terminal.ending import end_if_asked
from specs.base.printable import printable

if TYPE_CHECKING:
    from zoo.core.progress import Stage


@contextmanager
def stage_progress(*, quiet: bool) -> Iterator[Callable[[Stage], None]]:
    """A callback for every stage of long work, which shows rate and time left if the size is known."""
    if quiet or not sys.stderr.isatty():
        yield lambda stage: end_if_asked()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    bars = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    waits = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=bars.console,
        transient=True,
    )
    from rich.console import Group
    from rich.live import Live

    bar, wait = bars.add_task("", visible=False), waits.add_task("")
    with Live(Group(bars, waits), console=bars.console, transient=True) as live:
        shown = ""

        def show(stage: Stage) -> None:
            nonlocal shown
            end_if_asked()
            name = printable(stage.name)
            bars.update(
                bar, description=name, completed=stage.done, total=stage.total, visible=stage.total > 0
            )
            waits.update(wait, description=name, visible=stage.total == 0)
            if name != shown:  # show each stage, however short
                shown = name
                live.refresh()

        yield show
