"""The nearest right answer to a wrong word."""

import re
from collections.abc import Iterable

_LISTED = 12
_LONGEST = 100


def _normal(word: str) -> str:
    return re.sub(r"[-_\s]", "", word[:_LONGEST]).casefold()


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """`did you mean 'rope'?` when a candidate is close to the word, case, hyphens and underscores aside.

    Otherwise `choose from: a, b, c`, cut after twelve; empty when there is nothing to choose from.
    """
    import difflib

    names = list(dict.fromkeys(candidates))
    normal: dict[str, str] = {}
    for name in names:
        normal.setdefault(_normal(name), name)
    if close := difflib.get_close_matches(_normal(word), normal, n=1):
        return f"did you mean {normal[close[0]]!r}?"
    if not names:
        return ""
    more = f", ... ({len(names) - _LISTED} more)" if len(names) > _LISTED else ""
    return f"choose from: {', '.join(names[:_LISTED])}{more}"
