"""Lists with an entry per layer, as patterns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from zoo.configs.family import Data


def pattern(names: Sequence[str | None]) -> int | list[Data]:
    """The ``layers`` of a stack whose layers use these blocks (None: the stack's own), as short as they go.

    ``[a, b, a, b]`` becomes one group of two runs; ``[None, None]`` the count 2.
    """
    if all(name is None for name in names):
        return len(names)
    for length in range(2, len(names) // 2 + 1):
        whole = len(names) // length
        if list(names[: whole * length]) == list(names[:length]) * whole:
            group: Data = {"pattern": _runs(names[:length]), "repeat": whole}
            rest = names[whole * length :]
            if len(group["pattern"]) + len(rest) < len(_runs(names)):
                return [group, *_runs(rest)]
    return _runs(names)


def _runs(names: Sequence[str | None]) -> list[Data]:
    runs = []
    for name, group in groupby(names):
        count = len(list(group))
        run: Data = {} if name is None else {"use": name}
        runs.append({**run, "repeat": count} if count > 1 or not run else run)
    return runs
