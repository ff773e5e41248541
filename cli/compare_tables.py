"""What ``zoo compare`` has found: a table, what the specs differ in, and how they learnt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from cli.curves import Curve, braille_shown, letter, plot, style
from cli.render import console, table
from specs.errors import path_text

if TYPE_CHECKING:
    from specs.difference import Difference
    from zoo.training.comparison import Comparison, Result

_WIDEST, _WIDEST_LABEL = 100, 48
NUMBERS = ("parameters", "loss", "accuracy", "solved at", "steps/s", "tokens/s")


def print_comparison(found: Comparison) -> None:
    """Print the figures of all specs, what each changes in the first, their curves, and what is wrong with them."""
    from rich.text import Text

    out = console()
    typer.echo(f"{headline(found)}\n")
    columns = table("", "spec", *NUMBERS, *([] if found.sound else [" "]), right=NUMBERS)
    columns.columns[1].max_width = _WIDEST_LABEL
    for index, result in enumerate(found.results):
        note = Text("sees the future" if result.sees_answers else "", style="bold red")
        cells: list[str | Text] = [*figures(result), *([] if found.sound else [note])]
        columns.add_row(Text(letter(index), style=style(index)), result.label, *cells)
    columns.add_row("", Text("a guess", style="dim"), "", Text(f"{found.task.chance:.3f}", style="dim"))
    out.print(columns)
    for line in difference_lines(found):
        typer.echo(line)
    out.print()
    out.print(curve_title(found), style="dim")
    curves = [Curve(letter(index), found.curve(result)) for index, result in enumerate(found.results)]
    rule = (found.task.chance, "a guess")
    for text in plot(curves, min(out.width, _WIDEST), braille=braille_shown(), rule=rule):
        out.print(text, soft_wrap=True)
    kept = [letter(index) for index, result in enumerate(found.results) if result.kept]
    if kept:
        typer.echo(f"\n{', '.join(kept)}: trained before; --fresh trains anew")
    for line in warnings(found):
        typer.secho(f"\n{line}", fg=typer.colors.RED)


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
