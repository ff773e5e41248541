"""The tables of targets and layouts in the guides, from their rows in the code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from exporters.layouts import DEFAULT, LAYOUTS
from exporters.target.targets import TARGETS
from specs.base.descriptions import field_descriptions
from specs.files.export_options import OptionTable, choices_of, default_of, mark_of


def target_rows() -> list[str]:
    """The table of targets, as lines of Markdown."""
    rows = {target.name: target.guide for target in TARGETS.values()}
    return [*_table(("target", "operations", "a decoder's cache"), rows, default_of("target"))]


def layout_rows() -> list[str]:
    """The table of layouts, as lines of Markdown."""
    rows = {layout.name: layout.guide for layout in LAYOUTS.values()}
    return [*_table(("layout", "client", "graphs", "other files"), rows, DEFAULT)]


def option_rows() -> list[str]:
    """The table of the options of an export, as lines of Markdown."""
    rows = {name: _option_cells(name, text) for name, text in field_descriptions(OptionTable).items()}
    return [*_table(("option", "values", "default", "meaning", "directory"), rows, "")]


def _option_cells(name: str, text: str) -> tuple[str, ...]:
    meaning, _, otherwise = text.partition(" Default: ")
    mark, default = mark_of(name), default_of(name)
    kinds = {True: "true, false", False: "true, false"}
    values = ", ".join(f"`{choice}`" for choice in (*choices_of(name), *mark.names))
    if not values:
        values = (
            kinds[default] if isinstance(default, bool) else f"`{mark.metavar or 'N'}`".replace("|", "`, `")
        )
    stated = f"`{str(default).lower() if isinstance(default, bool) else default}`"
    shown = otherwise.removesuffix(".") or (stated if default not in (None, ()) else "")
    return values, shown, meaning, f"`{mark.word.format('VALUE')}`" if mark.word else ""


def _table(headings: Iterable[str], rows: dict[str, tuple[str, ...]], default: str) -> Iterator[str]:
    headings = [*headings]
    yield from (f"| {' | '.join(headings)} |", "|---" * len(headings) + "|")
    for name, cells in rows.items():
        note = " (default)" if name == default else ""
        yield f"| `{name}`{note} | {' | '.join(cells)} |"
