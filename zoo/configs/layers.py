"""Lists with an entry per layer, as patterns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from zoo.configs.family import Data


def pattern(names: Sequence[str | None]) -> int | list[Data]:
    """The ``layers`` of a stack whose layers use these blocks (None: the stack's own), as short as they go.

    ``[a, b, a, b]`` becomes one group of two runs, ``[a, b, c, b, c]`` a run and a group; ``[None, None]`` the count 2.
    """
    if all(name is None for name in names):
        return len(names)
    best = _runs(names)
    fewest = len(best)
    for start in range(min(len(names), _LONGEST)):
        for length in range(2, min((len(names) - start) // 2, _LONGEST) + 1):
            once = list(names[start : start + length])
            times = 1
            while list(names[start + times * length : start + (times + 1) * length]) == once:
                times += 1
            rest = names[start + times * length :]
            group: Data = {"pattern": _runs(once), "repeat": times}
            entries = [*_runs(names[:start]), group, *_runs(rest)]
            lines = len(entries) - 1 + len(group["pattern"])
            if times > 1 and lines < fewest:
                best, fewest = entries, lines
    return best


_LONGEST = 32
"""Layers before a group, or in a pattern, that are tried."""


def _runs(names: Sequence[str | None]) -> list[Data]:
    runs = []
    for name, group in groupby(names):
        count = len(list(group))
        run: Data = {} if name is None else {"use": name}
        runs.append({**run, "repeat": count} if count > 1 or not run else run)
    return runs


def layered(block: Data, variants: Mapping[str, Data], names: Sequence[str | None]) -> Data:
    """The ``layers``, ``block`` and ``blocks`` of a stack whose layers are this block or, by name, variants of it.

    A variant says what differs.  One that all layers are becomes the block itself.
    """
    used = list(dict.fromkeys(names))
    if len(used) == 1:
        return {
            "layers": len(names),
            "block": block if used[0] is None else laid_over(block, variants[used[0]]),
        }
    blocks = {name: variants[name] for name in used if name is not None}
    return {"layers": pattern(names), "block": block, "blocks": blocks}


def laid_over(base: Data, above: Data) -> Data:
    """Plain data with other data laid over it; a mapping that gives its kind is whole."""
    inner = {
        key: laid_over(base[key], value)
        for key, value in above.items()
        if isinstance(value, dict) and isinstance(base.get(key), dict) and "kind" not in value
    }
    return {**base, **above, **inner}
