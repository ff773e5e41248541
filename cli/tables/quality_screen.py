"""The rows of ``zoo eval``: the figures, the inputs, and the most costly parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cli.terminal.screen import Line, Screen, bad, good

if TYPE_CHECKING:
    from exporters.quality.quality import Cost, Quality

_LISTED = 3
_IN_A_LINE = 4


def print_quality_rows(screen: Screen, quality: Quality) -> None:
    """Print the figures with their budget, what they were measured on, and the most costly layers and parts."""
    from exporters.quality.quality import shares

    screen.row("quality", *_figures(quality))
    if quality.kinds:
        screen.row("by kind", *_kinds(quality))
    screen.row("inputs", quality.inputs)
    if quality.reference:
        screen.row("against", quality.reference)
    for label, costs in (("layers", quality.layers), ("parts", quality.roles)):
        if costs:
            screen.row(label, _costs(costs))
    if quality.weights is not None:
        screen.row("rounding", shares(quality))


def _figures(quality: Quality) -> Iterator[Line]:
    from exporters.quality.budget import KL
    from exporters.quality.quality import MEASURES

    width = max(len(MEASURES[name].label) for name in quality.figures)
    budget = quality.budget
    for name, value in quality.figures.items():
        text = f"{MEASURES[name].label:{width}}  {value:{MEASURES[name].form}}"
        if budget is None or name != budget.measure:
            yield text
            continue
        verdict = good("within") if quality.passed else bad("exceeded")
        yield (f"{text}  ", verdict, f" ({'at most' if name == KL else 'at least'} {budget.limit:g})")


def _kinds(quality: Quality) -> Iterator[str]:
    """The main figure of each kind of text, those that lose most first."""
    from exporters.quality.quality import MEASURES

    measure = MEASURES[quality.main]
    yield measure.label
    values = [(kind, f"{value:{measure.form}}") for kind, value in quality.of_kinds()]
    for start in range(0, len(values), _IN_A_LINE):
        yield ", ".join(f"{kind} {value}" for kind, value in values[start : start + _IN_A_LINE])


def _costs(costs: tuple[Cost, ...]) -> str:
    """The parts that cost most when rounded alone."""
    dearest = ", ".join(f"{cost.part} {cost.cost:.1e}" for cost in costs[:_LISTED])
    return f"{dearest}, and {len(costs) - _LISTED} less costly" if len(costs) > _LISTED else dearest
