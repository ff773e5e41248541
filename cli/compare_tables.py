"""What ``zoo compare`` has found: a table, what the specs differ in, and how they learnt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cli.curves import Curve, braille_shown, letter, plot, style
from cli.render import CellText, Column, console, print_table, say, styled
from specs.errors import path_text

if TYPE_CHECKING:
    from specs.difference import Difference
    from zoo.training.comparison import Comparison, Result

_WIDEST = 100
NUMBERS = ("parameters", "loss", "accuracy", "solved at", "steps/s", "tokens/s")
_RANKS = {"parameters": 1, "solved at": 2, "tokens/s": 3, "steps/s": 4}
_COLUMNS = [
    Column("", pinned=True),
    Column("spec", prose=24, pinned=True),
    *(Column(name, right=True, rank=_RANKS.get(name, 0)) for name in NUMBERS),
]


def print_comparison(found: Comparison) -> None:
    """Print the figures of all specs, what each changes in the first, their curves, and what is wrong with them."""
    say(f"{headline(found)}\n")
    rows: list[list[CellText]] = []
    for index, result in enumerate(found.results):
        verdict = styled("sees the future" if result.sees_answers else "", "bold red")
        rows.append([styled(letter(index), style(index)), result.label, *figures(result), verdict])
    guess = styled(f"{found.task.chance:.3f}", "dim")
    rows.append(["", styled("a guess", "dim"), "", guess, *[""] * (len(NUMBERS) - 1)])
    columns = _COLUMNS if found.sound else [*_COLUMNS, Column("verdict", prose=8)]
    print_table(columns, [row[: len(columns)] for row in rows])
    for line in difference_lines(found):
        say(line)
    say()
    say(curve_title(found), "dim")
    out = console()
    curves = [Curve(letter(index), found.curve(result)) for index, result in enumerate(found.results)]
    rule = (found.task.chance, "a guess")
    for text in plot(curves, min(out.width, _WIDEST), braille=braille_shown(), rule=rule):
        out.print(text, soft_wrap=True)
    kept = [letter(index) for index, result in enumerate(found.results) if result.kept]
    if kept:
        say(f"\n{', '.join(kept)}: trained before; --fresh trains anew")
    for line in warnings(found):
        say(f"\n{line}", "red")


def headline(found: Comparison) -> str:
    """What was done, in a line."""
    task, settings = found.task, found.settings
    devices = dict.fromkeys(result.device for result in found.results)
    return (
        f"{task.name}, length {task.length}: {task.explanation}; {settings.steps} steps of {settings.batch}, learning rate "
        f"{settings.rate:g}, seed {settings.seed}, on {' and '.join(devices)}"
    )


def curve_title(found: Comparison) -> str:
    """What the curves are."""
    smoothed = f", mean of {found.smoothing} steps" if found.smoothing > 1 else ""
    return f"loss in training{smoothed}, nats per token"


def figures(result: Result) -> list[str]:
    """The figures of a spec as text, under NUMBERS."""
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


def difference_lines(found: Comparison) -> list[str]:
    """What each spec changes in the first, a line each."""
    lines = []
    for index, result in enumerate(found.results[1:], 1):
        changes = ", ".join(map(change_text, found.differences(result)))
        lines.append(f"{letter(index)} differs from A: {changes or 'in nothing'}")
    return ["", *lines] if lines else []


def change_text(each: Difference) -> str:
    """A difference in short: position learned -> rope."""
    layers = "" if each.layers is None else f" (layers {', '.join(map(str, each.layers))})"
    return f"{path_text(each.path_b)}{layers} {_value_text(each.a)} \u2192 {_value_text(each.b)}"


def _value_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return str(value.get("kind", dict(value)))
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "none"}[value]
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def warnings(found: Comparison) -> list[str]:
    """What must be known before a loss is believed."""
    lines = []
    for index, result in enumerate(found.results):
        named = f"{letter(index)} ({result.label})"
        if result.sees_answers:
            lines.append(
                f"{named} sees the future: its loss means nothing, as what it predicts is among its inputs"
            )
        if result.diverged:
            lines.append(f"{named} diverged: its loss was no finite number at step {len(result.losses)}")
    return lines
