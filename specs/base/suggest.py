"""Suggestions for a misspelled word."""

import re
from collections.abc import Iterable

_LISTED = 12
_LONGEST = 100
_NEAR = 0.65
"""Minimum similarity, from 0 to 1, of a word to the one it misspells."""
_PREFIX = 3
"""Minimum length of a prefix that stands for a longer word."""


def _normal(word: str) -> str:
    return re.sub(r"[-_\s]", "", word[:_LONGEST]).casefold()


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that a word misspells or abbreviates, ignoring case, hyphens and underscores; None if there is none."""
    import difflib

    normal: dict[str, str] = {}
    for name in candidates:
        normal.setdefault(_normal(name), name)
    typed = _normal(word)
    if close := difflib.get_close_matches(typed, normal, n=1, cutoff=_NEAR):
        return normal[close[0]]
    starts = [name for name in normal if len(typed) >= _PREFIX and name.startswith(typed)]
    return normal[min(starts, key=len)] if starts else None


def misspelt(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that differs from a word by one letter at most, ignoring case, hyphens and underscores; None if there is none.

    Names with other digits are of other things.
    """
    import difflib

    near = nearest(word, candidates)
    if near is None:
        return None
    typed, meant = _normal(word), _normal(near)
    alike = sum(size for *_, size in difflib.SequenceMatcher(None, typed, meant).get_matching_blocks())
    one_letter = max(len(typed), len(meant)) - alike <= 1
    return near if one_letter and re.sub(r"\D", "", typed) == re.sub(r"\D", "", meant) else None


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """`did you mean 'rope'?` if a candidate is :func:`nearest` to the word, for use after a colon.

    Otherwise `choose from: a, b, c`, cut after twelve; empty without candidates.
    """
    names = list(dict.fromkeys(candidates))
    if (near := nearest(word, names)) is not None:
        return f"did you mean {near!r}?"
    if not names:
        return ""
    more = f", ... ({len(names) - _LISTED} more)" if len(names) > _LISTED else ""
    return f"choose from: {', '.join(names[:_LISTED])}{more}"


def suggestion(word: str, candidates: Iterable[str]) -> str:
    """:func:`did_you_mean` as a sentence, for use as a remedy."""
    text = did_you_mean(word, candidates)
    return f"{text[:1].upper()}{text[1:]}{'.' if text and not text.endswith('?') else ''}"


_MEANT = {True: ("yes", "on", "y", "true", "1"), False: ("no", "off", "n", "false", "0")}
"""Booleans of YAML 1.1, which are strings or numbers in YAML 1.2."""


def boolean_remedy(value: object) -> str:
    """The remedy for a value meant as a boolean; empty if it is not recognizable as one."""
    if not isinstance(value, str | int):
        return ""
    meant = next((flag for flag, words in _MEANT.items() if str(value).lower() in words), None)
    return "" if meant is None else f"Write {str(meant).lower()}."
