"""Which groups of matrices got how many bits, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.render import Column, print_table, say
from cli.units import byte_text

if TYPE_CHECKING:
    from zoo.manifest import MixedRecord

LISTED = 10
"""Groups that are listed by what they cost."""

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
    """The groups that cost most, the sum of all by their bits, and the size against the budget."""
    print_table(
        _GROUPS,
        [
            (
                each.name,
                str(each.bits),
                "" if each.cost is None else f"{each.cost:.1e}",
                byte_text(each.bytes),
            )
            for each in mixed.groups[:LISTED]
        ],
    )
    if others := mixed.groups[LISTED:]:
        say(f"and {len(others)} more groups (export.json lists all)")
    say()
    rows = []
    for bits in sorted({each.bits for each in mixed.groups}):
        alike = [each for each in mixed.groups if each.bits == bits]
        rows.append((str(bits), str(len(alike)), byte_text(sum(each.bytes for each in alike))))
    print_table(_TOTALS, rows)
    say()
    say(
        f"Mixed precision: {mixed.size:,} bytes, {mixed.bits_per_weight:.2f} bits per quantized weight, within the budget of "
        f"{mixed.budget}. Costs are estimates of what low bits in these weights alone lose (KL divergence in nats, or "
        "1 - cosine)."
    )
