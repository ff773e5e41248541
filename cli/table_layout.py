"""How wide the columns of a table become, which of them go, and how its lines wrap."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

_WIDE_GAP, _GAP = 3, 2
_WORD = re.compile(r" *(?:[^ ]*\d (?:[kMGTP]?B|[kMGTP]|ms|us|s)\b[^ ]*|[^ ]+)| +$")
_LONGEST_WORD = 40
"""The most columns of the terminal that prose takes for a word."""
_NARROWEST = 8
"""Columns of the terminal that a name keeps where nothing else helps."""


@dataclass(frozen=True)
class Column:
    """A column of a table, and what becomes of it where the table is wider than the terminal.

    Prose is wrapped at words, down to ``prose`` columns of the terminal.  Then columns with a ``rank`` are left out, all
    of the highest first; those of rank 0 always stay.  What still does not fit follows in a second table, which repeats the
    columns that are ``pinned``.  Numbers stand at the ``right``.
    """

    head: str
    right: bool = False
    prose: int = 0
    rank: int = 0
    pinned: bool = False


class Cell(NamedTuple):
    """The lines of a cell, and their style, such as ``bold red``."""

    lines: tuple[str, ...]
    style: str = ""


Row = Sequence[Cell]
Line = list[tuple[str, str]]
"""The parts of a line, each with its style."""


def cell_width(text: str) -> int:
    """How many columns of the terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """Lines of at most ``width`` columns, broken at spaces, but not before a unit; a longer word ends its line."""
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
    return [each.rstrip(" ") for each in [*lines, line]]


def fold(text: str, width: int) -> list[str]:
    """Lines of at most ``width`` columns, broken at spaces, and within words that are longer."""
    lines = []
    for line in wrap(text, width):
        while cell_width(line) > width:
            most = width
            while cell_width(line[:most]) > width:
                most -= 1
            most = max(most, 1)
            lines.append(line[:most])
            line = line[most:]
        lines.append(line)
    return lines


class Table:
    """Cells under their columns, laid out for a terminal of ``width`` columns, or as wide as they are for None."""

    def __init__(self, columns: Sequence[Column], rows: Sequence[Row], width: int | None) -> None:
        self.columns, self.rows, self.width = columns, rows, width
        every = [[row[i] for row in rows] for i in range(len(columns))]
        self._natural = [
            max([cell_width(column.head), *(cell_width(line) for cell in cells for line in cell.lines)])
            for column, cells in zip(columns, every, strict=True)
        ]
        self._least = [self._narrowest(i, cells) for i, cells in enumerate(every)]

    def _narrowest(self, index: int, cells: Sequence[Cell]) -> int:
        """The width at which no word is broken, nor a line of a column that is no prose."""
        column = self.columns[index]
        lines = [line for cell in cells for line in cell.lines]
        if column.prose:
            longest = max((cell_width(word) for line in lines for word in line.split(" ")), default=0)
            words = max(column.prose, min(longest, _LONGEST_WORD))
            body = min(words, max(map(cell_width, lines), default=0))
        else:
            body = max(map(cell_width, lines), default=0)
        return max([body, *map(cell_width, column.head.split())], default=0)

    def parts(self) -> list[list[Line]]:
        """The lines of the table, or of the tables that it became; first the heads, then a rule."""
        every = list(range(len(self.columns)))
        if self.width is None or _total([self._natural[i] for i in every], _WIDE_GAP) <= self.width:
            return [self._lines(every, [self._natural[i] for i in every], _WIDE_GAP)]
        return [self._lines(part, self._widths(part, self.width), _GAP) for part in self._fitting(self.width)]

    def _fitting(self, width: int) -> list[list[int]]:
        """Which columns stand side by side."""
        kept = list(range(len(self.columns)))
        while _total([self._least[i] for i in kept], _GAP) > width:
            last = max(self.columns[i].rank for i in kept)
            if not last:
                return self._split(kept, width)
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
        """The widths of columns that stand side by side: prose gets the room that is left, names give what is missing."""
        widths = [self._least[i] for i in part]
        while (over := _total(widths, _GAP) - width) > 0:
            place = max(range(len(part)), key=lambda i: (not self.columns[part[i]].right, widths[i]))
            if widths[place] <= _NARROWEST or self.columns[part[place]].right:
                break
            widths[place] = max(_NARROWEST, widths[place] - over)
        for _ in range(max(0, width - _total(widths, _GAP))):
            place = max(range(len(part)), key=lambda i: self._natural[part[i]] - widths[i])
            if self._natural[part[place]] <= widths[place]:
                break
            widths[place] += 1
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
        """One line, without spaces at its end."""
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
