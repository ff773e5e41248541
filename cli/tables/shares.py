"""Shares of a whole that add up, as numbers and as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

MOST, OTHERS = 5, "other"
"""The largest number of columns, and the name of the one for the rest."""
_EIGHTHS: Sequence[str] = ("", *"\u258f\u258e\u258d\u258c\u258b\u258a\u2589")
_PERCENT = len("100% ")


def apportioned(counts: Sequence[int], whole: int) -> list[int]:
    """Counts as units of ``whole`` that add up to it, such as 1000 for tenths of a percent.

    Each is rounded, and the largest makes up the difference, so that equal counts have equal shares.
    """
    total = sum(counts)
    if not total:
        return [0] * len(counts)
    shares = [round(count * whole / total) for count in counts]
    shares[max(range(len(counts)), key=counts.__getitem__)] += whole - sum(shares)
    return shares


def bar(share: float, width: int) -> str:
    """A share of 1 as a bar of ``width`` columns, in eighths of a column."""
    full, eighths = divmod(int(share * width * 8 + 0.5), 8)
    return "\u2588" * full + _EIGHTHS[eighths]


def share_lines(wholes: Sequence[Mapping[str, int]], width: int) -> list[str]:
    """The common headings of some wholes, then a line for each: the shares of its parts below their names, with bars.

    Only the ``MOST`` largest parts have a column; the rest is one.
    """
    names = list(dict.fromkeys(name for whole in wholes for name in whole))
    ranked = sorted(names, key=lambda name: -max(_share(whole, name) for whole in wholes))
    kept = [name for name in names if name in ranked[:MOST]]
    if len(names) > MOST:
        kept = [name for name in names if name in ranked[: MOST - 1]]
        wholes = [_with_others(whole, kept) for whole in wholes]
        kept.append(OTHERS)
    least = [max(len(name), _PERCENT) for name in kept]
    slack = max(0, width - sum(least) - 2 * (len(kept) - 1)) // len(kept)
    widths = [columns + slack for columns in least]
    longest = max((_share(whole, name) for whole in wholes for name in kept), default=0) or 1
    lines = [[f"{name:{columns}}" for name, columns in zip(kept, widths, strict=True)]]
    for whole in wholes:
        percents = apportioned([whole.get(name, 0) for name in kept], 100)
        cells = []
        for name, percent, columns in zip(kept, percents, widths, strict=True):
            drawn = bar(_share(whole, name) / longest, min(widths) - _PERCENT)
            cells.append(
                f"{f'{percent}%':{_PERCENT}}{drawn}".ljust(columns) if whole.get(name) else " " * columns
            )
        lines.append(cells)
    return ["  ".join(cells).rstrip() for cells in lines]


def _share(whole: Mapping[str, int], name: str) -> float:
    return whole.get(name, 0) / (sum(whole.values()) or 1)


def _with_others(whole: Mapping[str, int], kept: Sequence[str]) -> dict[str, int]:
    shown = {name: whole[name] for name in kept if name in whole}
    return {**shown, OTHERS: sum(whole.values()) - sum(shown.values())}
