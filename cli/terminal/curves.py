"""Curves in the terminal, drawn with braille dots if it supports them; a letter on each curve names it."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

HEIGHT = 14
"""Height of a plot, in lines."""

_STYLES = ("blue", "red", "green", "magenta", "yellow", "cyan")
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # by row and column of a cell
_BLANK = 0x2800
_BETWEEN = 12  # columns between two letters
_AXIS = 7  # columns of the numbers at the left


@dataclass(frozen=True)
class Curve:
    """Points from left to right, named by a letter; values that are not finite are omitted."""

    letter: str
    points: Sequence[tuple[float, float]]


def letter(index: int) -> str:
    """A, B, C, ..., Z, a, b, ..."""
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[index % 52]


def style(index: int) -> str:
    """The colour of a curve and its labels."""
    return _STYLES[index % len(_STYLES)]


def braille_shown() -> bool:
    """Whether standard output can encode braille."""
    try:
        "\u2800\u28ff\u2502".encode(sys.stdout.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def plot(
    curves: Sequence[Curve], width: int, *, braille: bool, rule: tuple[float, str] | None = None
) -> list[Text]:
    """Curves over axes that start at 0, in lines of at most ``width`` columns.

    ``rule`` is a reference value, with a name of at most 7 letters.
    """
    from rich.text import Text

    columns = width - _AXIS - 2
    points = [point for curve in curves for point in curve.points if math.isfinite(point[1])]
    right = max((x for x, _ in points), default=1.0) or 1.0
    top = max([y for _, y in points] + ([rule[0]] if rule else []), default=1.0) * 1.02 or 1.0
    canvas = _Canvas(columns, right, top, braille)
    labels = {row: f"{top * (HEIGHT - row - 0.5) / HEIGHT:.2f}" for row in range(1, HEIGHT, 3)}
    if rule is not None:
        labels[canvas.rule(rule[0])] = rule[1]
    for index, curve in enumerate(curves):
        canvas.draw(index, curve)
    for index, curve in enumerate(curves):
        canvas.name(index, curve.letter, len(curves))
    bar, corner, line = ("\u2502", "\u2514", "\u2500") if braille else ("|", "+", "-")
    lines = []
    for row, cells in enumerate(canvas.cells):
        made = Text().append(f"{labels.get(row, ''):>{_AXIS}} {bar}", style="dim")
        for mark, of in cells:
            made.append(mark, style="dim" if of is None else style(of))
        made.rstrip()
        lines.append(made)
    lines.append(Text(f"{'':{_AXIS}} {corner}{line * columns}", style="dim"))
    lines.append(Text(f"{'':{_AXIS + 2}}0{f'{right:g}':>{columns - 1}}", style="dim"))
    return lines


class _Canvas:
    """HEIGHT lines of cells, each a mark and the curve it belongs to; a cell has 2 x 4 dots in braille, else one."""

    def __init__(self, columns: int, right: float, top: float, braille: bool) -> None:
        self.cells: list[list[tuple[str, int | None]]] = [[(" ", None)] * columns for _ in range(HEIGHT)]
        self._columns, self._right, self._top, self._braille = columns, right, top, braille
        self._across, self._down = (2, 4) if braille else (1, 1)
        self._drawn: dict[int, dict[int, int]] = {}
        """The line of each curve at each column."""

    def rule(self, value: float) -> int:
        """Draw a dotted line at a value, and return its line number."""
        row = self._place(0, value)[1] // self._down
        self.cells[row] = [("\u2508" if self._braille else ".", None)] * self._columns
        return row

    def draw(self, index: int, curve: Curve) -> None:
        """Draw a curve through its points."""
        finite = [(x, y) for x, y in curve.points if math.isfinite(y)]
        for start, end in pairwise(finite if len(finite) > 1 else finite * 2):
            (left, high), (right, low) = self._place(*start), self._place(*end)
            steps = max(abs(right - left), abs(low - high), 1)
            for step in range(steps + 1):
                x, y = left + (right - left) * step / steps, high + (low - high) * step / steps
                self._dot(index, round(x), round(y))

    def name(self, index: int, letter: str, count: int) -> None:
        """Place the letter of a curve on it at intervals, away from the letters of other curves."""
        drawn = self._drawn.get(index, {})
        places = range(2 + _BETWEEN * index // count, self._columns, _BETWEEN)
        for column in [free for free in places if free in drawn] or list(drawn)[:1]:
            self.cells[drawn[column]][column] = (letter, index)

    def _place(self, x: float, y: float) -> tuple[int, int]:
        """The dot coordinates of a point."""
        across, down = self._columns * self._across - 1, HEIGHT * self._down - 1
        return round(x / self._right * across), round((1 - min(y / self._top, 1.0)) * down)

    def _dot(self, index: int, x: int, y: int) -> None:
        column, row = x // self._across, y // self._down
        self._drawn.setdefault(index, {})[column] = row
        if not self._braille:
            self.cells[row][column] = ("*+x#o%@"[index % 7], index)
            return
        mark, _ = self.cells[row][column]
        before = ord(mark) if ord(mark) > _BLANK else _BLANK
        self.cells[row][column] = (chr(before | _DOTS[y % 4][x % 2]), index)
