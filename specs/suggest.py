"""The nearest right answer to a wrong word."""

import re
from collections.abc import Iterable

_LISTED = 12
_LONGEST = 100
_NEAR = 0.65
"""The least similarity, of 1, at which a word passes for a misspelling of another."""
_PREFIX = 3
"""The least characters of a word that may stand for one that starts with them."""


def _normal(word: str) -> str:
    return re.sub(r"[-_\s]", "", word[:_LONGEST]).casefold()


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that a word is a misspelling or the start of, case, hyphens and underscores aside; or None."""
    import difflib

    normal: dict[str, str] = {}
    for name in candidates:
        normal.setdefault(_normal(name), name)
    typed = _normal(word)
    if close := difflib.get_close_matches(typed, normal, n=1, cutoff=_NEAR):
        return normal[close[0]]
    starts = [name for name in normal if len(typed) >= _PREFIX and name.startswith(typed)]
    return normal[min(starts, key=len)] if starts else None


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """`did you mean 'rope'?` when a candidate is :func:`nearest` to the word.

    Otherwise `choose from: a, b, c`, cut after twelve; empty when there is nothing to choose from.
    """
    names = list(dict.fromkeys(candidates))
    if (near := nearest(word, names)) is not None:
        return f"did you mean {near!r}?"
    if not names:
        return ""
    more = f", ... ({len(names) - _LISTED} more)" if len(names) > _LISTED else ""
    return f"choose from: {', '.join(names[:_LISTED])}{more}"
