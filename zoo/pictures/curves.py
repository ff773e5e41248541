"""Losses over steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from zoo.pictures.style import LIGHT, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT = 6.4, 3.8
_DASHES = ("-", "--", "-.", ":")


def loss_curves(
    curves: Sequence[tuple[str, Sequence[tuple[float, float]]]],
    rule: tuple[float, str],
    title: str,
) -> Figure:
    """Named loss curves over steps, distinguished by colour and dashes, with a reference value.

    Raises :class:`specs.base.errors.UserError` if matplotlib is not installed.
    """
    below = 0.21 * len(curves)
    figure = new_figure(_WIDTH, _HEIGHT + below, LIGHT)
    axes = figure.subplots()
    axes.set_facecolor(LIGHT.paper)
    value, name = rule
    axes.axhline(value, color=LIGHT.faint, linewidth=0.8, linestyle=(0, (2, 3)))
    axes.text(
        1.0,
        value,
        f"{name} ",
        color=LIGHT.faint,
        fontsize=8,
        ha="right",
        va="bottom",
        transform=axes.get_yaxis_transform(),
    )
    for index, (label, points) in enumerate(curves):
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            label=label,
            color=LIGHT.lines[index % len(LIGHT.lines)],
            linestyle=_DASHES[index % len(_DASHES)],
            linewidth=1.6,
        )
    axes.set_title(title, color=LIGHT.ink, fontsize=9, loc="left")
    axes.set_xlabel("step", color=LIGHT.ink, fontsize=8)
    axes.set_ylabel("nats per token", color=LIGHT.ink, fontsize=8)
    axes.tick_params(colors=LIGHT.ink, labelsize=8, length=2)
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.grid(axis="y", color=LIGHT.faint, alpha=0.25, linewidth=0.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(LIGHT.faint)
    high = _HEIGHT + below
    figure.subplots_adjust(left=0.085, right=0.98, top=1 - 0.32 / high, bottom=(0.5 + below) / high)
    figure.legend(
        loc="lower left",
        bbox_to_anchor=(0.075, 0.0),
        frameon=False,
        fontsize=8,
        labelcolor=LIGHT.ink,
        handlelength=3,
    )
    return figure
