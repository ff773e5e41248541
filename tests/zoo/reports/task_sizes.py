"""The shapes of a task's inputs at sizes of reports: B, T, P and S."""

from __future__ import annotations

from collections.abc import Mapping

from zoo.reports.trace import SYMBOLS
from zoo.tracing.symbols import summands
from zoo.tracing.task import Task


def shapes(task: Task, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """The shape of each input by name; sizes that follow from others, such as samples from frames, are those of the task."""
    names = {
        symbol
        for each in task.inputs
        for dim in each.dims
        if isinstance(dim, str)
        for symbol in summands(dim)
    }
    sources = {task.derived[name].source if name in task.derived else name for name in names}
    numbers = task.numbers({name: sizes[SYMBOLS[name]] for name in sources})

    def size(dim: int | str) -> int:
        return dim if isinstance(dim, int) else sum(numbers[symbol] for symbol in summands(dim))

    return {each.name: tuple(map(size, each.dims)) for each in task.inputs}
