"""Tables of differences between two exports, and of changes since they were written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cli.terminal.render import Column, print_table, say
from cli.terminal.screen import Screen
from zoo.core.units import byte_text

if TYPE_CHECKING:
    from zoo.record.integrity import Integrity
    from zoo.reports.exports import FactDifference, WeightDifference

_EXPORTS = [Column("fact", prose=16, pinned=True), Column("A", prose=16), Column("B", prose=16)]
_LISTED = 10


def print_exports(facts: Sequence[FactDifference]) -> None:
    """Print the differences in options and files; sizes are in bytes."""
    rows = [
        [" ".join(fact.path), *("" if n is None else fact_text(fact.path, n) for n in (fact.a, fact.b))]
        for fact in facts
    ]
    say()
    print_table(_EXPORTS, rows)


def fact_text(path: tuple[str, ...], value: Any) -> str:
    """A fact of an export as text."""
    if path[0] == "files":
        return value[:12] if path[-1] == "sha256" else byte_text(value)
    if isinstance(value, float):
        return f"{value:.1e}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def print_weights(difference: WeightDifference) -> None:
    """Print the number of stored weights that differ, and the first names."""
    if difference.alike:
        return
    total = difference.same + len(difference.differ)
    say(f"\nWeights: {len(difference.differ)} of {total} common weights differ")
    for heading, names in (
        ("differ", difference.differ),
        ("only in A", difference.only_a),
        ("only in B", difference.only_b),
    ):
        if names:
            more = f", and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
            say(f"  {heading}: {', '.join(names[:_LISTED])}{more}")


def print_changes(screen: Screen, label: str, integrity: Integrity) -> None:
    """Print the files of an export that differ from its record, as failures."""
    if integrity.changes:
        changes = [f"{label} has changed since it was exported: {change}" for change in integrity.changes]
        screen.failed("\n".join(changes), [("", "Export the model again, or restore the files.")])


def print_uncompared(label: str, integrity: Integrity) -> None:
    """Print that only the sizes of files were compared, if that is so."""
    if not integrity.contents:
        say(
            f"{label}: file sizes match its record. Contents were not compared; pass --digests to compare them.",
            "yellow",
        )
