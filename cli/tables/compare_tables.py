"""Tables of ``zoo compare``: figures, differences between the specs, and loss curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.terminal.curves import Curve, braille_shown, letter, plot, style
from cli.terminal.render import CellText, Column, console, print_table, say, styled
from cli.terminal.screen import Screen, screen_width

if TYPE_CHECKING:
    from zoo.training.comparison import Result, TrainingComparison

_FIGURES = 4
"""The numbers that the default screen has."""
NUMBERS = ("parameters", "loss", "accuracy", "solved at", "steps/s", "tokens/s")
_RANKS = {"parameters": 1, "solved at": 2, "tokens/s": 3, "steps/s": 4}
_COLUMNS = [
    Column("", pinned=True),
    Column("spec", prose=24, pinned=True),
    *(Column(name, right=True, rank=_RANKS.get(name, 0)) for name in NUMBERS),
]


def print_comparison(screen: Screen, comparison: TrainingComparison) -> None:
    """Print the figures of all specs, their changes to the first, their curves, and warnings."""
    task, settings = comparison.task, comparison.settings
    devices = " and ".join(dict.fromkeys(result.device for result in comparison.results))
    screen.title(
        task.name,
        f"length {task.length}: {task.explanation}",
        f"{settings.steps} steps of {settings.batch}, {devices}",
    )
    rows: list[list[CellText]] = []
    numbers = NUMBERS if screen.tables else NUMBERS[:_FIGURES]
    for index, result in enumerate(comparison.results):
        future = styled("sees the future" if result.sees_answers else "", "bold red")
        shown = figures(result)[: len(numbers)]
        rows.append([styled(letter(index), style(index)), result.label, *shown, future])
    guess = styled(f"{task.chance:.3f}", "dim")
    rows.append(["", styled("chance", "dim"), "", guess, *[""] * (len(numbers) - 1)])
    columns = _COLUMNS[: 2 + len(numbers)]
    if not comparison.sound:
        columns = [*columns, Column("verdict", prose=8)]
    print_table(columns, [row[: len(columns)] for row in rows], None if screen.tables else screen_width())
    if screen.tables:
        say(f"\nlearning rate {settings.rate:g}, seed {settings.seed}")
    for line in difference_lines(comparison):
        if line or screen.tables:
            say(line)
    say()
    say(curve_title(comparison), "dim")
    out = console()
    curves = [
        Curve(letter(index), comparison.curve(result)) for index, result in enumerate(comparison.results)
    ]
    rule = (comparison.task.chance, "chance")
    for text in plot(curves, screen_width(), braille=braille_shown(), rule=rule):
        out.print(text, soft_wrap=True)
    say(verdict(comparison))


def verdict(comparison: TrainingComparison) -> str:
    """Which specs solved the task, and by which step; nothing else is ranked."""
    solved = [
        f"{letter(index)} by step {result.solved}"
        for index, result in enumerate(comparison.results)
        if result.solved is not None
    ]
    steps = comparison.settings.steps
    if not solved:
        return f"None has solved the task within {steps} steps."
    others = len(comparison.results) - len(solved)
    rest = f"; {others} not within {steps} steps" if others else ""
    return f"Solved: {', '.join(solved)}{rest}."


def headline(comparison: TrainingComparison) -> str:
    """The task and the settings in one line."""
    task, settings = comparison.task, comparison.settings
    devices = dict.fromkeys(result.device for result in comparison.results)
    return (
        f"{task.name}, length {task.length}: {task.explanation}; {settings.steps} steps of {settings.batch}, learning rate "
        f"{settings.rate:g}, seed {settings.seed}, on {' and '.join(devices)}"
    )


def curve_title(comparison: TrainingComparison) -> str:
    """The title of the curves."""
    smoothed = f", mean over {comparison.smoothing} steps" if comparison.smoothing > 1 else ""
    return f"training loss{smoothed}, nats per token"


def figures(result: Result) -> list[str]:
    """The figures of a spec as text, in the order of NUMBERS."""
    speed = result.steps_per_second
    rates = [f"{speed:,.1f}", f"{speed * result.tokens:,.0f}"]
    if result.diverged or result.last is None:
        return [f"{result.parameters:,}", "diverged", "", "", *rates]
    solved = "" if result.solved is None else f"{result.solved}"
    return [
        f"{result.parameters:,}",
        f"{result.last.loss:.3f}",
        f"{result.last.accuracy:.1%}",
        solved,
        *rates,
    ]


def difference_lines(comparison: TrainingComparison) -> list[str]:
    """One line per spec with its changes to the first."""
    lines = []
    for index, result in enumerate(comparison.results[1:], 1):
        changes = ", ".join(change.text() for change in comparison.differences(result))
        lines.append(f"{letter(index)} differs from A: {changes}" if changes else f"{letter(index)} equals A")
    return ["", *lines] if lines else []


def warnings(comparison: TrainingComparison) -> list[str]:
    """Warnings about losses that are not meaningful."""
    lines = []
    for index, result in enumerate(comparison.results):
        named = f"{letter(index)} ({result.label})"
        if result.sees_answers:
            lines.append(
                f"{named} sees the future: its loss is meaningless, because its inputs contain the answers."
            )
        if result.diverged:
            lines.append(f"{named} diverged: its loss was not finite at step {len(result.losses)}.")
    return lines
