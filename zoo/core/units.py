"""Numbers as text: bytes, counts, parameters, FLOPs and durations, with their units.  Imports no torch."""

from __future__ import annotations

from collections.abc import Sequence


def byte_text(count: float) -> str:
    """A size in decimal units: 437.9 MB."""
    value, unit = _scaled(count, ("B", "kB", "MB", "GB", "TB", "PB"), 999.95)
    return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"


def count_text(count: float) -> str:
    """A number in three digits: 12.3 k, 1.34 T."""
    value, unit = _scaled(count, ("", " k", " M", " G", " T", " P"), 999.5)
    return f"{value:.0f}" if not unit and value == round(value) else f"{_three_digits(value)}{unit}"


def flop_text(count: float) -> str:
    """A number of floating-point operations: 292 GFLOP."""
    text = count_text(count)
    return f"{text}FLOP" if " " in text else f"{text} FLOP"


def parameter_text(count: int) -> str:
    """A number of parameters: 1,536 in full, larger ones in three digits: 12.3K, 124M, 6.74B."""
    if count < 10_000:
        return f"{count:,}"
    value, unit = _scaled(count, ("", "K", "M", "B", "T", "P"), 999.5)
    return f"{_three_digits(value)}{unit}"


def total_and_active(total: int, active: int) -> str:
    """The parameters of a model: ``46,702,792,704 parameters, 12.9B active per token``; the total alone if all are active."""
    routed = f", {parameter_text(active)} active per token" if active != total else ""
    return f"{total:,} parameters{routed}"


def time_text(seconds: float) -> str:
    """A duration in three digits: 1.25 ms."""
    value, unit = _scaled(seconds * 1e6, ("us", "ms", "s"), 999.5)
    return f"{_three_digits(value)} {unit}"


def _scaled(value: float, units: Sequence[str], limit: float) -> tuple[float, str]:
    """The value in the first unit in which it is below ``limit``, each a thousand of the one before; or in the last."""
    *smaller, last = units
    for unit in smaller:
        if value < limit:
            return value, unit
        value /= 1000
    return value, last


def _three_digits(value: float) -> str:
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"
