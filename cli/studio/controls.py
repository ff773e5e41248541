"""Edits that controls ask for: a value at a path, another kind, and the next number that works."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cli.studio.start_values import start_values
from cli.studio.typed_spec import TypedSpec
from specs.base.errors import SpecError, SpecPath
from specs.language.editing import value_at, with_value
from specs.language.reading import read_text
from specs.language.validation import REQUIRED
from specs.model.model import Model

_TRIES = 96
"""The most numbers that a step tries."""

_MISSING = 8
"""The most keys that a new kind is given."""

_ORDER = (*Model.model_fields,)


def changed(text: str, path: SpecPath, value: Any, folder: Path) -> str:
    """The text with a value at a path; keys that a new kind requires come with values that work, if there are such."""
    edited = with_value(text, path, value, _ORDER)
    if path[-1:] != ("kind",):
        return edited
    return _completed(edited, value_at(read_text(text, "").data, path[:-1]), folder)


def _completed(text: str, former: Any, folder: Path) -> str:
    """The text with required keys that are missing, one after the other; ``former``: the part before its kind changed."""
    for _ in range(_MISSING):
        missing = [path for path, rule in _problems(text, folder) if rule == REQUIRED]
        if not missing:
            break
        path = missing[0]
        tried = [
            with_value(text, path, value, _ORDER)
            for value in [*([former] if isinstance(former, Mapping) else []), *start_values(text, path)]
        ]
        better: dict[str, int] = {}
        for edited in tried:
            problems = _problems(edited, folder)
            if not any(other[: len(path)] == path for other, _ in problems):
                better[edited] = len(problems)
        if not better:
            break
        text = min(better, key=lambda edited: better[edited])
    return text


def stepped(text: str, path: SpecPath, value: float, direction: int, folder: Path) -> str | None:
    """The text with the next number up or down that works; None if none does within reach.

    The step starts from the number that the text states, or from ``value``, its default.
    """
    number, before = value_at(read_text(text, "").data, path), len(_problems(text, folder))
    start = number if type(number) in (int, float) else value
    for number in _ladder(start, direction):
        tried = with_value(text, path, number, _ORDER)
        after = len(_problems(tried, folder))
        if after == 0 or after < before:
            return tried
    return None


def _ladder(value: float, direction: int) -> Iterator[int | float]:
    """Numbers to try from one on: whole ones in steps of a power of two that divides them, others by a factor of two."""
    if not float(value).is_integer():
        yield float(f"{value * 2.0**direction:.3g}")
        return
    number, step = int(value), 1
    while number >= max(128, 12 * step) and number % (2 * step) == 0 and step < 64:
        step *= 2
    for count in range(1, _TRIES + 1):
        if number + direction * step * count < 0:
            return
        yield number + direction * step * count


def _problems(text: str, folder: Path) -> list[tuple[SpecPath, str]]:
    try:
        TypedSpec.read(text, folder)
    except SpecError as error:
        return [(problem.path, problem.rule) for problem in error.problems]
    return []
