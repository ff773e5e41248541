"""Heat maps in a terminal: blocks of colour where it has colours, else percentages."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from zoo.pictures.style import DARK

if TYPE_CHECKING:
    from rich.console import Console

GAP = "   "
"""What stands between maps side by side."""

LONGEST = 14
"""Letters of a label that are shown."""

Row = tuple[str, Sequence[Sequence[float | None]]]
"""A label, and for each map its shares, 0 to 1, or None where there can be none."""


@dataclass(frozen=True)
class Panel:
    """A map that is to be printed: its title, and how many columns of shares it may come to have."""

    title: str
    places: int


def print_maps(
    out: Console,
    panels: Sequence[Panel],
    rows: Iterable[Row],
    labels: Callable[[], Sequence[Sequence[str]]],
    longest: int,
    most: int | None = None,
) -> None:
    """Print maps that have their rows in common side by side, row by row as they come; what does not fit follows below.

    ``longest`` is the width of the longest label of a row; ``labels`` are those of each map's columns, asked for at the
    end.  Of the columns of one map as many are shown as fit, and of rows at most ``most``.
    """
    margin = min(longest, LONGEST) + 1
    rows = itertools.islice(rows, most)
    kept: list[Row] = []
    for strip in _strips(out, panels, margin):
        strip.print_titles()
        for row in kept or rows:
            if strip.first == 0:
                kept.append(row)
            strip.print_row(row)
        strip.print_columns(labels())


def fitting(out: Console, longest: int) -> int:
    """How many columns of one map fit beside the longest label of a row."""
    return (out.width - min(longest, LONGEST) - 1) // _cell(out)


def legend(out: Console) -> Text:
    """What the looks of a cell mean."""
    if not _is_colored(out):
        return Text("percent of what a token attends to, · where it may not look", "dim")
    steps = [Text("  ", _background(step / 10)) for step in range(11)]
    return Text.assemble("0% ", *steps, " 100% of what a token attends to")


def _strips(out: Console, panels: Sequence[Panel], margin: int) -> Iterator[_Strip]:
    """As many panels as fit side by side, then the next."""
    cell, room = _cell(out), out.width - margin
    widths = [min(room, max(panel.places * cell, len(panel.title))) for panel in panels]
    first = 0
    while first < len(panels):
        last = first + 1
        while last < len(panels) and sum(widths[first : last + 1]) + len(GAP) * (last - first) <= room:
            last += 1
        yield _Strip(out, panels[first:last], widths[first:last], first, margin, cell)
        first = last


@dataclass(frozen=True)
class _Strip:
    """Maps side by side, of which ``first`` is the number of the first one; ``cell`` is the width of a share."""

    out: Console
    panels: Sequence[Panel]
    widths: Sequence[int]
    first: int
    margin: int
    cell: int

    def print_titles(self) -> None:
        self._print("", [Text(panel.title, "bold") for panel in self.panels])

    def print_row(self, row: Row) -> None:
        label, shares = row
        own = shares[self.first : self.first + len(self.panels)]
        self._print(label, [self._cells(each[: self._fitting]) for each in own])

    def print_columns(self, labels: Sequence[Sequence[str]]) -> None:
        """The labels of columns, read downwards."""
        own = labels[self.first : self.first + len(self.panels)]
        cut = [[_cut(label) for label in each[: self._fitting]] for each in own]
        for place in range(max(len(label) for each in cut for label in each)):
            self._print("", [Text("".join(self._letter(label, place) for label in each)) for each in cut])
        most = max(map(len, own))
        if most > self._fitting:
            self._print(
                "", [Text(f"the first {self._fitting} of {most} tokens: a file has all, see --output", "dim")]
            )
        self.out.print()

    @property
    def _fitting(self) -> int:
        return (self.out.width - self.margin) // self.cell

    def _cells(self, shares: Sequence[float | None]) -> Text:
        cells = Text()
        for share in shares:
            if not _is_colored(self.out):
                cells.append(f"{'·' if share is None else round(100 * share):>{self.cell}}")
            else:
                cells.append(" " * self.cell, None if share is None else _background(share))
        return cells

    def _letter(self, label: str, place: int) -> str:
        letter = label[place : place + 1]
        if _is_colored(self.out):
            return set_cell_size(letter, self.cell)
        return " " * (self.cell - cell_len(letter)) + letter

    def _print(self, label: str, parts: Sequence[Text]) -> None:
        line = Text(set_cell_size(_cut(label), self.margin))
        for place, (part, width) in enumerate(zip(parts, self.widths, strict=False)):
            line.append(GAP if place else "")
            line.append_text(part)
            line.append(" " * (width - part.cell_len))
        if not _is_colored(self.out):
            line.rstrip()
        self.out.print(line, no_wrap=True, overflow="ignore", crop=False)


def _cell(out: Console) -> int:
    """The width of a share."""
    return 2 if _is_colored(out) else 4


def _is_colored(out: Console) -> bool:
    return out.color_system in ("truecolor", "256") and not out.no_color


def _background(share: float) -> str:
    red, green, blue = DARK.shade(share)
    return f"on #{red:02x}{green:02x}{blue:02x}"


def _cut(label: str) -> str:
    return label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"
