"""Table layout: column widths, omitted columns, and wrapping."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

_WIDE_GAP, _GAP = 3, 2
_WORD = re.compile(r" *(?:[^ ]*\d (?:[kMGTP]?B|[kMGTP]|ms|us|s)\b[^ ]*|[^ ]+)| +$")
_LONGEST_WORD = 40
"""Maximum width of a word in a prose column."""
_NARROWEST = 8
"""Minimum width of a name column."""


class Column(NamedTuple):
    """A column of a table, and how it adapts to a narrow terminal.

    Prose is wrapped at words, down to a width of ``prose``.  Then columns with a ``rank`` are omitted, the highest rank
    first; rank 0 is always kept.  Columns that still do not fit move to a second table, which repeats the ``pinned``
    columns.  ``right`` aligns numbers to the right.
    """

    head: str
    right: bool = False
    prose: int = 0
    rank: int = 0
    pinned: bool = False


class Cell(NamedTuple):
    """The lines of a cell and their style, such as ``bold red``."""

    lines: tuple[str, ...]
    style: str = ""


Row = Sequence[Cell]
Line = list[tuple[str, str]]
"""The parts of a line, each with its style."""


def cell_width(text: str) -> int:
    """The width of a text in terminal columns."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """Wrap at spaces to ``width`` columns, never before a unit; a longer word overflows its line."""
    if cell_width(text) <= width:
        return [text]
    lines, line = [], ""
    for word in _WORD.findall(text):
        fits_below = cell_width(indent + word.strip(" ")) <= width
        if line.strip(" ") and fits_below and cell_width(line + word.rstrip(" ")) > width:
            lines.append(line)
            line = indent + word.lstrip(" ")
        else:
            line += word
    return [part.rstrip(" ") for part in [*lines, line]]


def fold(text: str, width: int) -> list[str]:
    """Wrap at spaces to ``width`` columns, and split longer words."""
    lines = []
    for line in wrap(text, width):
        if cell_width(line) <= width:
            lines.append(line)
        else:
            from rich.cells import chop_cells

            lines += chop_cells(line, width)
    return lines


class TableLayout:
    """A table laid out for a terminal of ``width`` columns, or at its natural width for None."""

    def __init__(self, columns: Sequence[Column], rows: Sequence[Row], width: int | None) -> None:
        self.columns, self.rows, self.width = columns, rows, width
        self.omitted: list[str] = []
        """The headings of the columns that are left out, once :meth:`parts` has laid the table out."""
        every = [[row[i] for row in rows] for i in range(len(columns))]
        self._natural = [
            max([cell_width(column.head), *(cell_width(line) for cell in cells for line in cell.lines)])
            for column, cells in zip(columns, every, strict=True)
        ]
        self._least = [self._narrowest(i, cells) for i, cells in enumerate(every)]

    def _narrowest(self, index: int, cells: Sequence[Cell]) -> int:
        """The width at which no word of prose and no line of other columns is broken."""
        column = self.columns[index]
        lines = [line for cell in cells for line in cell.lines]
        if column.prose:
            longest = max((cell_width(word) for line in lines for word in line.split(" ")), default=0)
            words = max(column.prose, min(longest, _LONGEST_WORD))
            body = min(words, max(map(cell_width, lines), default=0))
        else:
            body = max(map(cell_width, lines), default=0)
        return max([body, *(cell_width(word.strip(" ")) for word in _WORD.findall(column.head))], default=0)

    def parts(self) -> list[list[Line]]:
        """The lines of the table, or of the tables it was split into: headings, a rule, then rows."""
        every = list(range(len(self.columns)))
        if self.width is None or _total([self._natural[i] for i in every], _WIDE_GAP) <= self.width:
            return [self._lines(every, [self._natural[i] for i in every], _WIDE_GAP)]
        return [self._lines(part, self._widths(part, self.width), _GAP) for part in self._fitting(self.width)]

    def _fitting(self, width: int) -> list[list[int]]:
        """The columns of each resulting table."""
        kept = list(range(len(self.columns)))
        while _total([self._least[i] for i in kept], _GAP) > width:
            last = max(self.columns[i].rank for i in kept)
            if not last:
                return self._split(kept, width)
            self.omitted = [self.columns[i].head for i in kept if self.columns[i].rank == last] + self.omitted
            kept = [i for i in kept if self.columns[i].rank != last]
        return [kept]

    def _split(self, kept: Sequence[int], width: int) -> list[list[int]]:
        pinned = [i for i in kept if self.columns[i].pinned]
        parts, part = [], list(pinned)
        for index in kept:
            if index in pinned:
                continue
            if len(part) > len(pinned) and _total([self._least[i] for i in (*part, index)], _GAP) > width:
                parts.append(sorted(part))
                part = list(pinned)
            part.append(index)
        return [*parts, sorted(part)]

    def _widths(self, part: Sequence[int], width: int) -> list[int]:
        """The widths of the columns of one table: prose takes the remaining width, names shrink if it is too little."""
        widths = [self._least[i] for i in part]
        while (over := _total(widths, _GAP) - width) > 0:
            widest = max(range(len(part)), key=lambda i: (not self.columns[part[i]].right, widths[i]))
            if widths[widest] <= _NARROWEST or self.columns[part[widest]].right:
                break
            widths[widest] = max(_NARROWEST, widths[widest] - over)
        for _ in range(max(0, width - _total(widths, _GAP))):
            widest = max(range(len(part)), key=lambda i: self._natural[part[i]] - widths[i])
            if self._natural[part[widest]] <= widths[widest]:
                break
            widths[widest] += 1
        return widths

    def _lines(self, part: Sequence[int], widths: Sequence[int], gap: int) -> list[Line]:
        heads = [fold(self.columns[i].head, width) for i, width in zip(part, widths, strict=True)]
        tallest = max(map(len, heads))
        bold = Cell((), "bold")
        stacked = [[""] * (tallest - len(lines)) + lines for lines in heads]
        titles = [
            self._line(part, widths, gap, line, [bold] * len(part)) for line in zip(*stacked, strict=True)
        ]
        rule: Line = [("\u2500" * _total(widths, gap), "")]
        body: list[Line] = []
        for row in self.rows:
            cells = [row[i] for i in part]
            wrapped = [
                [piece for line in cell.lines for piece in fold(line, width)]
                for cell, width in zip(cells, widths, strict=True)
            ]
            body += [
                self._line(part, widths, gap, line, cells) for line in zip_longest(*wrapped, fillvalue="")
            ]
        return [*titles, rule, *body]

    def _line(
        self,
        part: Sequence[int],
        widths: Sequence[int],
        gap: int,
        texts: Sequence[str],
        cells: Sequence[Cell],
    ) -> Line:
        """One line without trailing spaces."""
        line: Line = []
        before = 0
        for index, width, text, cell in zip(part, widths, texts, cells, strict=True):
            padding = " " * max(0, width - cell_width(text))
            right = self.columns[index].right
            if text:
                line += [(" " * before + padding * right, ""), (text, cell.style)]
                before = 0
            before += gap + (width if not text else len(padding) * (not right))
        return line


def _total(widths: Sequence[int], gap: int) -> int:
    return sum(widths) + gap * max(0, len(widths) - 1)
