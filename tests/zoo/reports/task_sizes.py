"""The shapes and values of a task's inputs at sizes of reports: B, T, P and S."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from specs.model.model import Model
from zoo.functional.numbered import TOKENS_PER_LABEL
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


def input_values(spec: Model, task: Task, sizes: Mapping[str, int]) -> dict[str, Tensor]:
    """The inputs: noise, or ones of integers and booleans, with as many labels among the tokens as costs count with."""
    known = shapes(task, sizes)
    values = {
        placeholder.name: torch.randn(known[placeholder.name], dtype=placeholder.dtype)
        if placeholder.dtype.is_floating_point
        else torch.ones(known[placeholder.name], dtype=placeholder.dtype)
        for placeholder in task.inputs
    }
    if "token_type_ids" in values:
        values["token_type_ids"] *= 0
    if spec.head.span_width is not None:
        assert spec.head.token_to_find is not None
        values["input_ids"][:, ::TOKENS_PER_LABEL] = spec.head.token_to_find
    return values
