"""The default screen of ``zoo diff``: what differs, and what it costs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cli.tables.diff_tables import MOST_ASSIGNMENTS, by_stacks, label, outline, quantity_name, quantity_text
from cli.tables.export_differences import fact_text
from cli.terminal.screen import Screen, good, row_width

if TYPE_CHECKING:
    from zoo.reports.difference import ModelDifference
    from zoo.reports.quantities import Quantity
    from zoo.reports.spec_difference import SpecDifference

_LINES = 8
"""Lines for changes, in the spec or in exports, and costs."""
_MOST_COSTS = 6
_DETAILS = ("without embeddings", "cache per token", "state")
"""Costs that only the table has."""


def print_difference(
    screen: Screen, difference: SpecDifference, whole: ModelDifference | None, typed: bool
) -> None:
    """Print both models, their changes, the ``--set`` options unless they were typed, and the costs that differ."""
    for mark, side in (("A", difference.a), ("B", difference.b)):
        screen.title(side.label, outline(side), mark)
    changes = [
        change.text(names)
        for names, change in by_stacks([change for change in difference.spec if not change.follows])
    ]
    facts = list(_facts(difference))
    if not changes and not facts:
        exports = difference.exports is not None and difference.same
        text = "equal, and both exports have the same options and weights" if exports else "equal"
        screen.row("spec", good(text))
        return
    options = "" if whole is None or typed or not whole.assignments else _options(whole.assignments)
    same = [] if whole is None else [quantity_name(cost) for cost in _compared(whole) if cost.a == cost.b]
    room = _LINES - bool(same) - (len(options) > row_width())
    few = len(changes) + len(facts) <= room - _MOST_COSTS
    costs = [] if whole is None else [cost for cost in _compared(whole) if cost.a != cost.b]
    costs = costs[: _MOST_COSTS if few else _MOST_COSTS - 1]
    room -= len(costs)
    if changes:
        screen.row("spec", *_cut(changes, max(2, room - min(len(facts), 3))))
        if difference.same_architecture:
            screen.row("", "Both compute the same function; training or the longest input differs.")
    if facts:
        screen.row("export", *_cut(facts, max(3, room - len(changes))))
    if costs:
        screen.row("cost", *_cost_lines(costs))
    if same:
        screen.row("same", ", ".join(same))
    if options:
        screen.row("B is A", options)
    for fault in () if whole is None else whole.faults:
        screen.row("FLOPs", f"not available: {fault}")


def _compared(whole: ModelDifference) -> list[Quantity]:
    return [cost for cost in whole.quantities if cost.name not in _DETAILS]


def _cut(lines: Sequence[str], most: int) -> list[str]:
    """At most ``most`` lines that fit; the last counts those that are left out."""
    width = row_width()
    shown = [line if len(line) <= width else f"{line[: width - 1]}\u2026" for line in lines]
    if len(shown) <= most:
        return shown
    return [*shown[: most - 1], f"\u2026 and {len(shown) - most + 1} more"]


def _facts(difference: SpecDifference) -> Iterator[str]:
    """The differences of two exports: options, weights, then files."""
    facts = sorted(difference.exports or (), key=lambda fact: fact.path[0] == "files")
    for fact in facts:
        a, b = ("none" if value is None else fact_text(fact.path, value) for value in (fact.a, fact.b))
        if fact.path[-1] != "sha256":
            yield f"{' '.join(fact.path)} {a} \u2192 {b}"
    weights = difference.weights
    if weights is not None and not weights.alike:
        differing = len(weights.differ)
        apart = [
            f"{len(names)} only in {side}"
            for side, names in (("A", weights.only_a), ("B", weights.only_b))
            if names
        ]
        yield ", ".join([f"{differing} of {weights.same + differing} common weights differ", *apart])


def _cost_lines(costs: Sequence[Quantity]) -> Iterator[str]:
    rows = [("", "A", "B", "B - A")]
    for cost in costs:
        a, b = ("-" if value is None else quantity_text(cost, value) for value in (cost.a, cost.b))
        rows.append((label(cost), a, b, _change(cost)))
    names, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
    for name, *cells in rows:
        aligned = (f"   {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        yield f"{name:{names}}{''.join(aligned)}".rstrip()


def _change(cost: Quantity) -> str:
    """B relative to A: in percent, or as a factor from 10 on."""
    if not cost.a or cost.b is None:
        return ""
    ratio = cost.b / cost.a
    return f"x {ratio:,.0f}" if ratio >= 10 else f"{ratio - 1:+.1%}"


def _options(assignments: Sequence[str]) -> str:
    options = " ".join(f"--set {shlex.quote(assignment)}" for assignment in assignments)
    if len(assignments) > MOST_ASSIGNMENTS or len(options) > 2 * row_width():
        listed = "--json" if len(assignments) > MOST_ASSIGNMENTS else "-v"
        return f"with {len(assignments)} --set options, which {listed} lists"
    return f"with {options}"
