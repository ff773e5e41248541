"""Numbers with their units, in three digits."""

from __future__ import annotations


def byte_text(count: int) -> str:
    """A size in decimal units: 437.9 MB."""
    size, units = float(count), ["B", "kB", "MB", "GB", "TB", "PB"]
    while size >= 999.95 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{count} B" if units[0] == "B" else f"{size:.1f} {units[0]}"


def count_text(count: float) -> str:
    """A number in three digits: 124 M, 1.34 T."""
    units = ["", " k", " M", " G", " T", " P"]
    while count >= 999.5 and len(units) > 1:
        count /= 1000
        units.pop(0)
    whole = not units[0] and count == round(count)
    return f"{count:.{0 if whole else _decimals(count)}f}{units[0]}"


def _decimals(value: float) -> int:
    """Places behind the point that make three digits."""
    return 2 if value < 9.995 else 1 if value < 99.95 else 0


def time_text(seconds: float) -> str:
    """A duration in three digits: 1.25 ms."""
    value, units = seconds * 1e6, ["us", "ms", "s"]
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.{_decimals(value)}f} {units[0]}"
