"""Line charts as SVG, in the colours of the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 440, 260
LEFT, RIGHT, TOP, BOTTOM = 74, 12, 12, 44


@dataclass(frozen=True)
class Axis:
    """An axis from minimum to maximum; ``log`` requires positive values."""

    title: str
    least: float
    most: float
    log: bool = False

    def share(self, value: float) -> float:
        """The position of a value on the axis, from 0 to 1."""
        if self.log:
            least, most, value = math.log(self.least), math.log(self.most), math.log(value)
        else:
            least, most = self.least, self.most
        return (value - least) / ((most - least) or 1)

    def ticks(self) -> list[float]:
        """About five round values, or powers of ten."""
        if self.log:
            powers = range(math.ceil(math.log10(self.least)), math.floor(math.log10(self.most)) + 1)
            step = max(1, -(-len(powers) // 6))
            return [10.0**power for power in powers[::step]]
        rough = (self.most - self.least) / 5 or 1
        size = 10 ** math.floor(math.log10(rough))
        step = next(size * times for times in (1, 2, 5, 10) if size * times >= rough)
        if self.least == int(self.least):
            step = max(step, 1) if self.most - self.least > 2 else step
        first = math.ceil(self.least / step)
        return [i * step for i in range(first, math.floor(self.most / step) + 1)]


@dataclass(frozen=True)
class Line:
    """A named line through points."""

    name: str
    points: Sequence[tuple[float, float]]


def line_chart(
    title: str, x: Axis, y: Axis, lines: Sequence[Line], rules: Sequence[tuple[float, str]] = ()
) -> str:
    """Lines over two axes; ``rules``: labelled horizontal lines."""
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def across(value: float) -> str:
        return coordinate(LEFT + x.share(value) * wide)

    def up(value: float) -> str:
        return coordinate(TOP + (1 - y.share(value)) * high)

    parts = []
    for tick in y.ticks():
        parts.append(f'<path class="grid" d="M{LEFT} {up(tick)}h{wide}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{up(tick)}" dy="4" text-anchor="end">{number(tick)}</text>')
    for tick in x.ticks():
        parts.append(
            f'<text x="{across(tick)}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{number(tick)}</text>'
        )
    parts.append(f'<path class="axis" d="M{LEFT} {TOP}v{high}h{wide}"/>')
    parts.append(
        f'<text x="{LEFT + wide / 2:.0f}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x.title)}</text>'
    )
    middle = TOP + high / 2
    parts.append(
        f'<text transform="translate(13 {middle:.0f}) rotate(-90)" text-anchor="middle">{escape(y.title)}</text>'
    )
    for value, text in rules:
        parts.append(f'<path class="rule" d="M{LEFT} {up(value)}h{wide}"/>')
        anchor = (
            f'x="{WIDTH - RIGHT - 6}" text-anchor="end"'
            if _right_is_freer(value, x, y, lines)
            else f'x="{LEFT + 6}"'
        )
        parts.append(f'<text {anchor} y="{up(value)}" dy="-4">{escape(text)}</text>')
    for i, line in enumerate(lines):
        path = "L".join(f"{across(a)} {up(b)}" for a, b in line.points)
        parts.append(f'<path class="line line-{i}" d="M{path}"/>')
    chart = f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'
    if len(lines) == 1:
        return chart
    keys = "".join(f'<li class="key-{i}">{escape(line.name)}</li>' for i, line in enumerate(lines))
    return f'{chart}<ul class="keys">{keys}</ul>'


def _right_is_freer(value: float, x: Axis, y: Axis, lines: Sequence[Line]) -> bool:
    """Whether lines keep further away from a height at the right end of the chart than at its left end."""

    def room(first: float, last: float) -> float:
        near = (b for line in lines for a, b in line.points if first <= x.share(a) <= last)
        return min((abs(y.share(b) - y.share(value)) for b in near), default=1.0)

    return room(0.75, 1) >= room(0, 0.25)


def coordinate(value: float) -> str:
    """A coordinate in a picture, with two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def number(value: float) -> str:
    """A value of an axis: 0.5, 2,000, 1e-05, 1e6."""
    if value and not 1e-3 <= abs(value) < 1e6:
        mantissa, _, power = f"{value:.0e}".partition("e")
        return f"{mantissa}e{int(power)}"
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"
