"""Heat maps in a terminal: blocks of colour if it has colours, else percentages."""

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
"""The space between adjacent maps."""

LONGEST = 14
"""Maximum length of a label."""

Row = tuple[str, Sequence[Sequence[float | None]]]
"""A label, and for each map its weights from 0 to 1, or None where attention is masked."""


@dataclass(frozen=True)
class Panel:
    """A map to print: its title and its maximum number of key columns."""

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
    """Print maps with common rows side by side, row by row as they arrive; maps that do not fit follow below.

    ``longest`` is the width of the longest row label; ``labels`` returns the column labels of each map and is called at
    the end.  Columns are cut to the width of the terminal, rows to ``most``.
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
    """The number of map columns that fit beside the longest row label."""
    return (out.width - min(longest, LONGEST) - 1) // _cell(out)


def legend(out: Console, whole: str = "a query token's attention", masked: str = ", · masked") -> Text:
    """The legend of the cells, which are shares of a whole; ``masked`` describes masked cells, if there may be any."""
    if not _is_colored(out):
        return Text(f"percent of {whole}{masked}", "dim")
    steps = [Text("  ", _background(step / 10)) for step in range(11)]
    return Text.assemble("0% ", *steps, f" 100% of {whole}")


def _strips(out: Console, panels: Sequence[Panel], margin: int) -> Iterator[_Strip]:
    """Strips of panels that fit side by side."""
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
    """Maps side by side; ``first`` is the index of the first one, ``cell`` the width of a weight."""

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
        self._print(label, [self._cells(values[: self._fitting]) for values in own])

    def print_columns(self, labels: Sequence[Sequence[str]]) -> None:
        """Print the column labels, which read downwards."""
        own = labels[self.first : self.first + len(self.panels)]
        cut = [[_cut(label) for label in names[: self._fitting]] for names in own]
        for row in range(max(len(label) for names in cut for label in names)):
            self._print("", [Text("".join(self._letter(label, row) for label in names)) for names in cut])
        most = max(map(len, own))
        if most > self._fitting:
            self._print(
                "",
                [
                    Text(
                        f"Showing the first {self._fitting} of {most} columns; --output FILE shows all.",
                        "dim",
                    )
                ],
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

    def _letter(self, label: str, row: int) -> str:
        letter = label[row : row + 1]
        if _is_colored(self.out):
            return set_cell_size(letter, self.cell)
        return " " * (self.cell - cell_len(letter)) + letter

    def _print(self, label: str, parts: Sequence[Text]) -> None:
        line = Text(set_cell_size(_cut(label), self.margin))
        for index, (part, width) in enumerate(zip(parts, self.widths, strict=False)):
            line.append(GAP if index else "")
            line.append_text(part)
            line.append(" " * (width - part.cell_len))
        if not _is_colored(self.out):
            line.rstrip()
        self.out.print(line, no_wrap=True, overflow="ignore", crop=False)


def _cell(out: Console) -> int:
    """The width of a weight."""
    return 2 if _is_colored(out) else 4


def _is_colored(out: Console) -> bool:
    return out.color_system in ("truecolor", "256") and not out.no_color


def _background(share: float) -> str:
    red, green, blue = DARK.shade(share)
    return f"on #{red:02x}{green:02x}{blue:02x}"


def _cut(label: str) -> str:
    return label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"
