"""A model with the traces of its tasks, which one reading hands on to another: what is costed is often sized next."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

import torch
from torch import fx, nn

from specs.model.model import Model
from zoo.builder import ZooModel, assemble
from zoo.core.remembering import reading_key, remembered_by
from zoo.core.tensors import weight_tensors
from zoo.tracing.float_dtype import in_dtype
from zoo.tracing.symbols import Placeholder, Symbols
from zoo.tracing.task import Task
from zoo.tracing.tracer import Tracer


@dataclass(frozen=True)
class TaskTrace:
    """The graph of a task, and the names of its sizes."""

    graph: fx.Graph
    symbols: Symbols

    @classmethod
    def of(cls, model: nn.Module, task: Task) -> TaskTrace:
        """TaskTrace a task of a model on the meta device. Raises :class:`zoo.tracing.tracer.UntraceableError`."""
        static = {size for _, tensor in weight_tensors(model) for size in tensor.shape}
        static.update(dim for placeholder in task.inputs for dim in placeholder.dims if isinstance(dim, int))
        symbols = task.symbols(static)
        return cls(Tracer(model, symbols).run(task.call, task.inputs), symbols)

    def in_dtype(self, dtype: torch.dtype) -> TaskTrace:
        """The trace of the same task with weights in another dtype in place of float16: see :func:`zoo.tracing.float_dtype.in_dtype`."""
        return TaskTrace(in_dtype(self.graph, dtype), self.symbols)


class TracedModel:
    """The model of a spec with weights in a dtype, which is built when it is needed, and whose tasks are traced once each."""

    def __init__(self, spec: Model, dtype: torch.dtype = torch.float32) -> None:
        self.spec, self.dtype = spec, dtype
        self._traces: dict[tuple[str, tuple[Placeholder, ...]], TaskTrace] = {}

    @cached_property
    def model(self) -> ZooModel:
        """The model, on the meta device."""
        return assemble(self.spec, self.dtype)

    def key(self, task: Task) -> Hashable | None:
        """All that a reading of a task's graph depends on; None if it may not be kept."""
        about = self._whole if task.about is None else task.about
        return about and (about, self.dtype, task.name, task.inputs)

    @cached_property
    def _whole(self) -> str | None:
        return reading_key(self.spec)

    def trace(self, task: Task) -> TaskTrace:
        """The trace of a task. Raises :class:`zoo.tracing.tracer.UntraceableError`."""
        key = task.name, task.inputs
        if key not in self._traces:
            self._traces[key] = TaskTrace.of(self.model, task)
        return self._traces[key]

    def outputs(self, task: Task) -> tuple[Placeholder, ...]:
        """The outputs of a task, as inputs of another, such as ``text_model.text_embeds``. Raises :class:`zoo.tracing.tracer.UntraceableError`."""
        return _outputs((self, task))

    def hand_on(self) -> None:
        """Leave this model to the next reading of the spec, which may change its traces."""
        if key := reading_key(self.spec):
            with _lock:
                _left[key, self.dtype] = self
                if len(_left) > _KEPT:
                    _left.popitem(last=False)

    @classmethod
    def taken(cls, spec: Model, dtype: torch.dtype) -> TracedModel:
        """The model that was left, which nothing else has from now on, or a new one."""
        key = reading_key(spec)
        with _lock:
            left = _left.pop((key, dtype), None) if key else None
        return left or cls(spec, dtype)


def task_key(subject: tuple[TracedModel, Task]) -> Hashable | None:
    """The key under which what follows from a task of a model is remembered; None if nothing is."""
    traced, task = subject
    return traced.key(task)


@remembered_by(task_key)
def _outputs(subject: tuple[TracedModel, Task]) -> tuple[Placeholder, ...]:
    traced, task = subject
    trace = traced.trace(task)
    outputs: Any = trace.graph.output_node().args[0]
    placeholders = list[Placeholder]()
    for name, node in outputs.items():
        first, second = node.meta["info"]
        dims: Any = map(trace.symbols.name, zip(first.shape, second.shape, strict=True))
        placeholders.append(Placeholder(f"{task.name}.{name}", first.dtype, tuple(dims)))
    return tuple(placeholders)


_KEPT = 2
"""The number of models that are left at most: a spec, and the base that it is compared with."""

_left: OrderedDict[tuple[str, torch.dtype], TracedModel] = OrderedDict()
_lock = Lock()
