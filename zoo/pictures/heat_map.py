"""Heat maps in grids: shares between 0 and 1 of labelled rows and columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from zoo.pictures.style import INCH, LIGHT, Style, new_figure, rgb

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FONT = 7.0
"""Font size of labels in points."""

_LINE = 1.35 * FONT / INCH
_LETTER = 0.62 * FONT / INCH  # approximate width of a letter in inches
_SMALLEST, _USUAL = 1.05, 3.2  # inches of a map's side: at least, and alone
_ROOMY = 1.6  # up to which a map grows so that all labels fit
_LARGE, _LARGE_ALONE = 2.2, 10.0  # up to which it grows so that many cells can be told apart
_MARGIN, _GAP, _TITLE = 0.12, 0.12, 0.24
_FADED, _OPAQUE = -0.6, 0.85  # the value that black stands for, and how much a whole share hides of an image


@dataclass(frozen=True)
class HeatMap:
    """Shares by row and column, 0 to 1, NaN if masked; a title and a secondary note."""

    title: str
    shares: NDArray[np.float32]
    note: str = ""


@dataclass(frozen=True)
class HeatMapGrid:
    """Heat maps with common labels, ``across`` per row; laid over an ``image``, if any: grey values from 0 to 1."""

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    maps: Sequence[HeatMap]
    across: int
    image: NDArray[np.float32] | None = None


def heat_maps(grids: Sequence[HeatMapGrid], style: Style = LIGHT) -> Figure:
    """Grids of heat maps, one below the other, with labels at the left and bottom of each grid.

    Raises :class:`specs.base.errors.UserError` if matplotlib is not installed.
    """
    placed = [_Layout.of(grid) for grid in grids]
    width = max(layout.width for layout in placed)
    height = sum(layout.height for layout in placed)
    figure = new_figure(width, height, style)
    top = height
    for layout in placed:
        layout.draw(figure, top, style)
        top -= layout.height
    return figure


@dataclass(frozen=True)
class _Layout:
    """A grid with sizes in inches: ``wide`` and ``high`` of a map, ``left`` and ``below`` of labels."""

    grid: HeatMapGrid
    wide: float
    high: float
    left: float
    below: float

    @classmethod
    def of(cls, grid: HeatMapGrid) -> _Layout:
        most = max(len(grid.rows), len(grid.columns))
        side = max(_SMALLEST, _USUAL / min(grid.across, len(grid.maps)) ** 0.5)
        most_side = _LARGE_ALONE if len(grid.maps) == 1 else _LARGE
        side = max(side, min(_ROOMY, 0.8 * _LINE * most), min(most_side, 0.35 * _LINE * most))
        cell = min(1.4 * _LINE, side / most)
        left = _letters(grid.rows) + 0.08
        below = _letters(grid.columns) + 0.08
        return cls(grid, max(cell * len(grid.columns), 0.7), cell * len(grid.rows), left, below)

    @property
    def lines(self) -> int:
        return -(-len(self.grid.maps) // self.grid.across)

    @property
    def head(self) -> float:
        """The height of a map's title and note."""
        notes = any(shown.note for shown in self.grid.maps)
        return _LINE * (2 if notes else 1) + 0.06

    @property
    def width(self) -> float:
        across = min(self.grid.across, len(self.grid.maps))
        maps = across * self.wide + (across - 1) * _GAP
        return max(2 * _MARGIN + self.left + maps, 2 * _MARGIN + 1.3 * _LETTER * len(self.grid.title))

    @property
    def height(self) -> float:
        return 2 * _MARGIN + _TITLE + self.lines * (self.head + self.high + _GAP) + self.below

    def draw(self, figure: Figure, top: float, style: Style) -> None:
        """Draw the grid below ``top``, in inches from the lower edge of the figure."""
        width, height = figure.get_size_inches()
        title = (_MARGIN, top - _MARGIN - _LINE)
        _write(figure, title, self.grid.title, style.ink, 1.3 * FONT, weight="bold")
        for number, shown in enumerate(self.grid.maps):
            line, column = divmod(number, self.grid.across)
            x = _MARGIN + self.left + column * (self.wide + _GAP)
            y = top - _MARGIN - _TITLE - (line + 1) * (self.head + self.high) - line * _GAP
            axes = figure.add_axes((x / width, y / height, self.wide / width, self.high / height))
            last = number + self.grid.across >= len(self.grid.maps)
            self._map(axes, shown, style, left=column == 0, below=last)
            base = y + self.high + 0.03
            if shown.note:
                _write(figure, (x, base), shown.note, style.faint)
                base += _LINE
            _write(figure, (x, base), shown.title, style.ink)

    def _map(self, axes: Axes, shown: HeatMap, style: Style, *, left: bool, below: bool) -> None:
        colors = np.array([rgb(color) for color in style.ramp], np.float64)  # steps 3
        shares = np.clip(np.nan_to_num(shown.shares), 0, 1)
        stops = np.linspace(0, 1, len(colors))
        image = np.stack([np.interp(shares, stops, colors[:, channel]) for channel in range(3)], -1) / 255
        image[np.isnan(shown.shares)] = np.array(rgb(style.paper)) / 255
        opaque = None
        if self.grid.image is not None:
            rows, columns = shown.shares.shape
            extent = (-0.5, columns - 0.5, rows - 0.5, -0.5)
            axes.imshow(self.grid.image, cmap="gray", vmin=_FADED, vmax=1, extent=extent, aspect="auto")
            opaque = shares * _OPAQUE
        axes.imshow(image, aspect="auto", interpolation="nearest", alpha=opaque)
        axes.set_facecolor(style.paper)
        for side in axes.spines.values():
            side.set(color=style.faint, linewidth=0.4)
        axes.tick_params(length=0, pad=2, labelsize=FONT, labelcolor=style.ink)
        self._label(axes, "y", self.grid.rows if left else (), self.high)
        self._label(axes, "x", self.grid.columns if below else (), self.wide)

    def _label(self, axes: Axes, side: str, labels: Sequence[str], length: float) -> None:
        """Label as many ticks of an axis as fit."""
        every = max(1, -(-int(len(labels) * 0.8 * _LINE * 1000) // int(length * 1000)))
        shown = range(0, len(labels), every)
        axis = axes.yaxis if side == "y" else axes.xaxis
        axis.set_ticks(list(shown))
        axis.set_ticklabels([labels[index] for index in shown], rotation=0 if side == "y" else 90)
        for tick in axis.get_ticklabels():
            tick.set_parse_math(False)


def _letters(labels: Sequence[str]) -> float:
    """The length of the longest label, in inches."""
    return _LETTER * max(map(len, labels), default=0)


def _write(
    figure: Figure,
    corner: tuple[float, float],
    words: str,
    color: str,
    size: float = FONT,
    weight: str = "normal",
) -> None:
    """Write a line of text with its lower left corner at a point in inches."""
    width, height = figure.get_size_inches()
    x, y = corner[0] / width, corner[1] / height
    figure.text(x, y, words, color=color, fontsize=size, fontweight=weight, va="bottom", parse_math=False)
