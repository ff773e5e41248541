"""Tables of the quality of an export."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.terminal.render import CellText, Column, print_table, say, styled

if TYPE_CHECKING:
    from exporters.quality.quality import Cost, Quality

LISTED = 8
"""Number of parts of a model listed, most costly first."""


def print_quality(quality: Quality) -> None:
    """Print the figures with their budgets, and the most costly parts of the model if known."""
    from exporters.quality.budget import KL
    from exporters.quality.quality import MEASURES, shares

    budget = quality.budget
    rows: list[list[CellText]] = []
    for name, value in quality.figures.items():
        cells: list[CellText] = [MEASURES[name].label, format(value, MEASURES[name].form)]
        if budget is not None:
            held = name == budget.measure
            limit = f"{'at most' if name == KL else 'at least'} {budget.limit:g}"
            verdict = styled("within", "green") if quality.passed else styled("exceeded", "red")
            cells += [limit, verdict] if held else ["", ""]
        rows.append(cells)
    columns = [Column("quality", pinned=True), Column("value", right=True)]
    print_table([*columns, *([Column("budget", right=True), Column("verdict")] if budget else [])], rows)
    say()
    against = f", against {quality.reference}" if quality.reference else ""
    say(f"Quality was measured on {quality.inputs}{against}.")
    if quality.kinds:
        say()
        _print_kinds(quality)
    for heading, costs in (("layer", quality.layers), ("part", quality.roles)):
        if costs:
            say()
            _print_costs(heading, costs)
    if quality.weights is not None:
        say()
        say(shares(quality))


def _print_kinds(quality: Quality) -> None:
    """The figures of each kind of text, those that lose most first."""
    from exporters.quality.quality import MEASURES

    names = next(iter(quality.kinds.values()))
    columns = [Column(MEASURES[name].label, right=True) for name in names]
    rows = [
        (kind, *(format(quality.kinds[kind][name], MEASURES[name].form) for name in names))
        for kind, _ in quality.of_kinds()
    ]
    print_table([Column("kind of text", pinned=True), *columns], rows)


def _print_costs(heading: str, costs: tuple[Cost, ...]) -> None:
    print_table(
        [Column(heading, pinned=True), Column("cost of rounding it alone", right=True)],
        [(cost.part, f"{cost.cost:.2e}") for cost in costs[:LISTED]],
    )
    if others := costs[LISTED:]:
        say(f"and {len(others)} more, each at most {others[0].cost:.2e}")
