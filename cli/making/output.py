"""How plans and their results are printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cli.terminal.render import Cell, Column, print_table, styled
from cli.terminal.screen import Line, Screen, row_width
from zoo.core.units import time_text

if TYPE_CHECKING:
    from exporters.making.make import BuildResult
    from exporters.making.plan import MakePlan

_STYLES = {"restore": "cyan", "build": "yellow", "fail": "bold red", "failed": "bold red"}
_ACTIONS = {"cached": "restore", "build": "build", "failed": "fail"}
_LISTED = 10
"""The largest number of artefacts that have a line each."""
_LONGEST_NAME = 40


@dataclass(frozen=True)
class _Row:
    """An artefact, what is or was done with it, the seconds that it took, and why."""

    artefact: str
    action: str
    why: str
    seconds: float = 0.0


def print_plan(screen: Screen, plan: MakePlan, *, checked: bool) -> None:
    """Print what is to be done for every artefact that is not current, and how many are."""
    stale = plan.unlocked if checked else plan.stale
    rows = [_Row(step.artefact.name, _ACTIONS[step.state], step.why) for step in stale]
    screen.title(str(plan.zoo.path), "", _artefacts(len(plan.steps)))
    _print_rows(screen, rows)
    screen.done(f"{len(plan.steps) - len(stale):,} of {_artefacts(len(plan.steps))} up to date, checked")
    if checked and stale:
        names = ", ".join(row.artefact for row in rows[:_LISTED])
        more = f" and {len(rows) - _LISTED} more" if len(rows) > _LISTED else ""
        screen.failed(f"Not up to date: {names}{more}", [("", "Run zoo make.")])


def print_made(screen: Screen, plan: MakePlan, made: Sequence[BuildResult]) -> None:
    """Print what was done, and why; then the errors of artefacts that could not be built, once per cause."""
    screen.title(str(plan.zoo.path), "", _artefacts(len(plan.steps)))
    _print_rows(
        screen,
        [_Row(result.step.artefact.name, result.state, result.step.why, result.seconds) for result in made],
    )
    counts = Counter(result.state for result in made)
    parts = [f"{count:,} {state}" for state, count in sorted(counts.items())]
    if current := len(plan.steps) - len(made):
        parts.append(f"{current:,} already up to date")
    screen.done(f"{_artefacts(len(plan.steps))}: {', '.join(parts)}")


def print_failures(screen: Screen, made: Sequence[BuildResult]) -> None:
    """Print the errors of artefacts that could not be built, once per cause, on standard error."""
    causes: dict[str, list[str]] = {}
    for result in made:
        if result.state == "failed":
            causes.setdefault(result.error, []).append(result.step.artefact.name)
    if causes:
        count = sum(map(len, causes.values()))
        screen.failed(
            f"{count:,} failed:", [(f"{', '.join(names)}: {error}", "") for error, names in causes.items()]
        )


def _print_rows(screen: Screen, rows: Sequence[_Row]) -> None:
    if not rows:
        return
    if screen.tables:
        print_table(
            [
                Column("artefact", pinned=True),
                Column("action"),
                Column("time", right=True),
                Column("reason", prose=30),
            ],
            [
                (row.artefact, styled(row.action, _STYLES.get(row.action, "green")), _time(row), row.why)
                for row in rows
            ],
        )
        return
    ordered = _by_cause(rows)
    shown = ordered[:_LISTED]
    for action in dict.fromkeys(row.action for row in shown):
        screen.row(action, *_lines([row for row in shown if row.action == action]))
    if len(ordered) > _LISTED:
        screen.row("", f"\u2026 and {len(ordered) - _LISTED:,} more, which -v lists")


def _by_cause(rows: Sequence[_Row]) -> list[_Row]:
    """The rows grouped by action, and within an action by cause."""
    actions = list(dict.fromkeys(row.action for row in rows))
    causes = list(dict.fromkeys(row.why for row in rows))
    return sorted(rows, key=lambda row: (actions.index(row.action), causes.index(row.why)))


def _lines(rows: Sequence[_Row]) -> list[Line]:
    """A line for each artefact; the first of each cause has it."""
    names = min(max(len(row.artefact) for row in rows), _LONGEST_NAME)
    times = max(len(_time(row)) for row in rows)
    lines: list[Line] = []
    said = ""
    for row in rows:
        head = f"{row.artefact:{names}}  {_time(row):>{times}}{'  ' * (times > 0)}"
        why = "" if row.why == said else row.why.partition("\n")[0]
        said = row.why
        room = max(0, row_width() - len(head))
        pieces: list[str | Cell] = [head.rstrip() if not why else head]
        if why:
            pieces.append(styled(why if len(why) <= room else f"{why[: room - 1]}\u2026", "dim"))
        lines.append(pieces)
    return lines


def _time(row: _Row) -> str:
    return time_text(row.seconds) if row.seconds else ""


def _artefacts(count: int) -> str:
    return f"{count:,} artefact{'' if count == 1 else 's'}"
