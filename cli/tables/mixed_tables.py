"""Tables of mixed precision: the bits of each group of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.terminal.render import Column, print_table, say
from zoo.core.units import byte_text

if TYPE_CHECKING:
    from zoo.record.records import MixedRecord

LISTED = 10
"""Number of groups listed, most costly first."""

_GROUPS = [
    Column("weights", pinned=True),
    Column("bits", right=True),
    Column("cost of low bits", right=True),
    Column("size", right=True),
]
_TOTALS = [
    Column("bits", pinned=True, right=True),
    Column("groups", right=True),
    Column("size", right=True),
]


def print_mixed(mixed: MixedRecord) -> None:
    """Print the most costly groups, the totals by bits, and the size relative to the budget."""
    print_table(
        _GROUPS,
        [
            (
                part.name,
                str(part.bits),
                "" if part.cost is None else f"{part.cost:.1e}",
                byte_text(part.bytes),
            )
            for part in mixed.groups[:LISTED]
        ],
    )
    if others := mixed.groups[LISTED:]:
        say(f"and {len(others)} more groups (export.json lists all)")
    say()
    rows = []
    for bits in sorted({part.bits for part in mixed.groups}):
        alike = [part for part in mixed.groups if part.bits == bits]
        rows.append((str(bits), str(len(alike)), byte_text(sum(part.bytes for part in alike))))
    print_table(_TOTALS, rows)
    say()
    say(
        f"Mixed precision: {mixed.size:,} bytes, {mixed.bits_per_weight:.2f} bits per quantized weight, within the budget of "
        f"{mixed.budget}. Costs are estimates of the loss from rounding these weights alone (KL divergence in nats, or "
        "1 - cosine)."
    )
