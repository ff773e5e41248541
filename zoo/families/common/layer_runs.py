"""Lists of layers by the blocks that they use, as short as they go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, groupby, pairwise

from zoo.families.common.template import Data


def pattern(names: Sequence[str | None]) -> int | list[Data]:
    """The ``layers`` of a stack whose layers use these blocks (None: the stack's own), as short as they go.

    ``[a, b, a, b]`` becomes one group of two runs, ``[a, b, c, b, c]`` a run and a group; ``[None, None]`` the count 2.
    """
    if all(name is None for name in names):
        return len(names)
    repeats = _repeats(names)
    changes = list(accumulate((a != b for a, b in pairwise(names)), initial=0))

    def runs(start: int, end: int) -> int:
        return 1 + changes[end - 1] - changes[start] if start < end else 0

    best, fewest = _runs(names), runs(0, len(names))
    for (start, length), times in sorted(repeats.items()):
        end = start + times * length
        lines = runs(0, start) + runs(start, start + length) + runs(end, len(names))
        if lines < fewest:
            group: Data = {"pattern": _runs(names[start : start + length]), "repeat": times}
            best, fewest = [*_runs(names[:start]), group, *_runs(names[end:])], lines
    return best


def _repeats(names: Sequence[str | None]) -> dict[tuple[int, int], int]:
    """The repeated runs of layers: the first layer and the length of a run -> the number of repetitions."""
    runs = {}
    for length in range(2, min(len(names) // 2, _LONGEST) + 1):
        alike = 0  # layers from here on that are as the ones so many later
        for start in reversed(range(len(names) - length)):
            alike = alike + 1 if names[start] == names[start + length] else 0
            if start < _LONGEST and alike >= length:
                runs[start, length] = 1 + alike // length
    return runs


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
            "block": block if used[0] is None else merge(block, variants[used[0]]),
        }
    blocks = {name: variants[name] for name in used if name is not None}
    return {"layers": pattern(names), "block": block, "blocks": blocks}


def merge(base: Data, above: Data) -> Data:
    """Plain data with other data laid over it; a mapping that gives its kind is whole."""
    inner = {
        key: merge(base[key], value)
        for key, value in above.items()
        if isinstance(value, dict) and isinstance(base.get(key), dict) and "kind" not in value
    }
    return {**base, **above, **inner}
