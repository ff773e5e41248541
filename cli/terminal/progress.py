"""The live line: one line on standard error while work goes on, in a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from cli.terminal.exit_status import end_if_asked
from cli.terminal.render import say
from specs.base.printable import printable
from zoo.core.units import byte_text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from zoo.core.progress import Stage

_SPINNER = ("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\")
_BAR = ("━─", "#-")
_CELLS = 16
_RATE = 10
_LINES = 10
_ESTIMATED_AFTER = 1.0
"""Seconds of a step before the time left is estimated."""


class ShowStep(Protocol):
    """Shows a step by name, with what is done of a total (0: not known) and a note on it."""

    def __call__(self, name: str, done: float = 0, total: float = 0, note: str = "") -> None: ...


class _Line:
    """The state of the line, rendered anew at every refresh."""

    def __init__(self, begun: float | None) -> None:
        self.name, self.done, self.total, self.note = "", 0.0, 0.0, ""
        self.step_begun = time.monotonic()
        self.begun = self.step_begun if begun is None else begun

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.cells import cell_len, set_cell_size
        from rich.text import Text

        if not self.name:
            yield Text("")
            return
        now = time.monotonic()
        plain = int(options.ascii_only)
        spinner = _SPINNER[plain][int((now - self.begun) * _RATE) % len(_SPINNER[plain])]
        times = self._times(now)
        room = options.max_width - len(f"{spinner} {times}")
        wanted = min(cell_len(self.name), room)
        # In a narrow terminal, the bar and the amounts give way to the name.
        progress = next(text for text in self._progress(plain) if len(text) <= room - wanted)
        yield Text.assemble(
            (f"{spinner} ", "cyan"),
            set_cell_size(self.name, wanted),
            (progress, "cyan"),
            (times, "dim"),
            no_wrap=True,
        )

    def _progress(self, plain: int) -> Iterator[str]:
        """The progress, in ever fewer words."""
        note = f"  {self.note}" if self.note else ""
        if self.total:
            share = min(1.0, self.done / self.total)
            full = round(share * _CELLS)
            bar = _BAR[plain][0] * full + _BAR[plain][1] * (_CELLS - full)
            yield f"  {bar} {share:4.0%}{note}"
            yield f"  {share:4.0%}{note}"
            yield f"  {share:4.0%}"
        yield note
        yield ""

    def _times(self, now: float) -> str:
        left = ""
        spent = now - self.step_begun
        if self.total and 0 < self.done < self.total and spent > _ESTIMATED_AFTER:
            left = f", {_clock(spent * (self.total - self.done) / self.done)} left"
        return f"  {_clock(now - self.begun)}{left}"


def _clock(seconds: float) -> str:
    """A duration in seconds, or minutes and seconds."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


@contextmanager
def live_line(*, quiet: bool, since: float | None = None) -> Iterator[ShowStep]:
    """A callback that shows a step with its progress, the time elapsed and the time left; the line is gone afterwards.

    ``since`` is the monotonic time at which the whole work began (default: now).
    """
    if quiet or not sys.stderr.isatty():
        yield lambda name, done=0, total=0, note="": end_if_asked()
        return
    from rich.console import Console
    from rich.live import Live

    line = _Line(since)
    with Live(
        line, console=Console(stderr=True), transient=True, refresh_per_second=_RATE, redirect_stdout=False
    ) as live:

        def show(name: str, done: float = 0, total: float = 0, note: str = "") -> None:
            end_if_asked()
            name = printable(name)
            is_new = name != line.name
            if is_new:
                line.step_begun = time.monotonic()
            line.name, line.done, line.total, line.note = name, done, total, printable(note)
            if is_new:  # show each step, however short
                live.refresh()

        yield show


@contextmanager
def stage_progress(*, quiet: bool, since: float | None = None) -> Iterator[Callable[[Stage], None]]:
    """A live line for the stages of long work, whose sizes are bytes."""
    with live_line(quiet=quiet, since=since) as show:
        yield lambda stage: show(
            stage.name, stage.done, stage.total, _bytes(stage.done, stage.total) if stage.total else ""
        )


def _bytes(done: int, total: int) -> str:
    return f"{byte_text(done)} of {byte_text(total)}"


@contextmanager
def counted_progress(things: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A live line for many equal steps, by the number done of a total; without a terminal, a line for each tenth of them."""
    in_terminal = sys.stderr.isatty()
    with live_line(quiet=quiet) as show:

        def on_step(done: int, total: int) -> None:
            show(things, done, total, f"{done} of {total}")
            is_tenth = done * _LINES // total > max(done - 1, 0) * _LINES // total
            if is_tenth and not quiet and not in_terminal:
                say(f"[{done}/{total}] {things}", err=True)

        yield on_step


@contextmanager
def working(name: str, *, quiet: bool) -> Iterator[None]:
    """A live line for a single step."""
    with live_line(quiet=quiet) as show:
        show(name)
        yield
