"""Differences between blocks with equal wiring."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from zoo.drawing.diagram import AttentionPart, Element, Part, Sum, Way

MOST_DIFFERENCES = 3
"""Blocks with more differences are drawn in full."""


def differences(way: Way, other: Way) -> list[str] | None:
    """The differences of the second way as text; None if it needs a drawing of its own."""
    if _wiring(way) != _wiring(other):
        return None
    words = [word for pair in zip(_parts(way), _parts(other), strict=True) for word in _changes(*pair)]
    return words if len(words) <= MOST_DIFFERENCES else None


def _wiring(element: Way | Element) -> object:
    """A key of the wiring: the parts, and the path of the stream."""
    match element:
        case tuple():
            return tuple(_wiring(inner) for inner in element)
        case Sum():
            return [
                _wiring(element.join) if isinstance(element.join, Part) else element.join,
                *map(_wiring, element.ways),
            ]
        case Part():
            return type(element), element.role, element.title
        case _:
            return element


def _parts(way: Iterable[Element]) -> list[Part]:
    parts: list[Part] = []
    for element in way:
        if isinstance(element, Part):
            parts.append(element)
        elif isinstance(element, Sum):
            parts += [part for inner in element.ways for part in _parts(inner)]
            parts += [element.join] if isinstance(element.join, Part) else []
    return parts


def _changes(part: Part, other: Part) -> list[str]:
    words = changed(part.details, other.details)
    if isinstance(part, AttentionPart) and isinstance(other, AttentionPart):
        before, after = _within(part), _within(other)
        words += [f"no {title}" for title in before if title not in after]
        for title, inner in after.items():
            if title not in before:
                words.append(" ".join([title, *inner.details]))
            elif news := changed(before[title].details, inner.details):
                words.append(f"{title} {', '.join(news)}")
    return words


def _within(part: AttentionPart) -> dict[str, Part]:
    """The parts that act within an attention, by title."""
    inner = [*part.on_queries_keys, *([part.on_scores] if part.on_scores else [])]
    return {part.title: part for part in inner}


def changed(details: Sequence[str], others: Sequence[str]) -> list[str]:
    """The details added in the second, and the names of those removed."""
    news = [detail for detail in others if detail not in details]
    begun = {_name(detail) for detail in news}
    return news + [
        f"no {_name(detail)}" for detail in details if detail not in others and _name(detail) not in begun
    ]


def _name(detail: str) -> str:
    """A detail without its number: ``window``, ``key-value heads``."""
    return re.sub(r"[^\w ]?[\d.,]+", "", detail).strip()
