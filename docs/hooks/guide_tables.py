"""The tables of targets and layouts in the guides, from their rows in the code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from exporters.layouts import DEFAULT, LAYOUTS
from exporters.steps.options import ExportOptions
from exporters.target.targets import TARGETS


def target_rows() -> list[str]:
    """The table of targets, as lines of Markdown."""
    rows = {target.name: target.guide for target in TARGETS.values()}
    return [*_table(("target", "operations", "a decoder's cache"), rows, ExportOptions().target)]


def layout_rows() -> list[str]:
    """The table of layouts, as lines of Markdown."""
    rows = {layout.name: layout.guide for layout in LAYOUTS.values()}
    return [*_table(("layout", "client", "graphs", "other files"), rows, DEFAULT)]


def _table(headings: Iterable[str], rows: dict[str, tuple[str, ...]], default: str) -> Iterator[str]:
    headings = [*headings]
    yield from (f"| {' | '.join(headings)} |", "|---" * len(headings) + "|")
    for name, cells in rows.items():
        note = " (default)" if name == default else ""
        yield f"| `{name}`{note} | {' | '.join(cells)} |"
