"""Graphs that an engine has loaded, and runs as ONNX Runtime does here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch import Tensor

from exporters.engines.process import EngineError, EngineProcess
from exporters.environment import required_environment
from exporters.ort_outputs import JUNK, RefusalError
from exporters.session_options import opset_of, run_entries
from zoo.state_names import present_of
from zoo.tracing.task import Task


@dataclass(frozen=True)
class EngineGraph:
    """A graph in an engine, with the names of its outputs in their order; a ``wide`` one takes float32 instead of half floats."""

    process: EngineProcess
    task: Task
    outputs: tuple[str, ...]
    wide: bool = False

    def __call__(self, feeds: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return its outputs by name, given those ``feeds`` that it takes."""
        wanted = {given.name for given in self.task.inputs}
        taken = {name: self.array(tensor) for name, tensor in feeds.items() if name in wanted}
        try:
            found = self.process.run(self.task.name, taken)
            if missing := [name for name in self.outputs if name not in found]:
                raise EngineError(f"no output {', '.join(missing)}")
        except EngineError as error:
            raise EngineRefusalError(error) from None
        return {name: torch.from_numpy(found[name]) for name in self.outputs}

    def in_place(self, feeds: Mapping[str, Tensor], buffers: Mapping[str, Any]) -> dict[str, Tensor]:
        """The outputs, with new keys and values written into ``buffers``, which also hold the past."""
        past = {name: torch.from_numpy(buffer) for name, buffer in buffers.items()}
        outputs = self({**feeds, **past})
        for name, buffer in buffers.items():
            buffer[...] = outputs[present_of(name)].numpy()
        return outputs

    def buffers(self, cache: Mapping[str, Tensor], length: int) -> dict[str, Any]:
        """Buffers of ``length`` slots for an empty cache without a fixed length."""
        return {
            name: np.full(
                (*empty.shape[:2], empty.shape[2] or length, empty.shape[3]),
                JUNK,
                dtype=self.array(empty).dtype,
            )
            for name, empty in cache.items()
        }

    def array(self, tensor: Tensor) -> Any:
        """A tensor as an array that the engine takes."""
        wide = tensor.float() if self.wide and tensor.is_floating_point() else tensor
        return np.ascontiguousarray(wide.numpy())


def nodes_by_operation(graph: onnx.GraphProto) -> dict[str, list[str]]:
    """The names of a graph's nodes by operation."""
    found = dict[str, list[str]]()
    for node in graph.node:
        found.setdefault(node.op_type, []).append(node.name)
    return found


class EngineRefusalError(RefusalError):
    """An engine's refusal, with the node that it names."""

    def __init__(self, error: EngineError) -> None:
        super().__init__(error.words)
        self.node = error.node


def load_graph(process: EngineProcess, path: Path, task: Task, *, wide: bool, exact: bool) -> EngineGraph:
    """Load a graph in an engine.  Raises :class:`exporters.engines.process.EngineError`."""
    graph = onnx.load(path, load_external_data=False).graph
    outputs = [output.name for output in graph.output]
    options = {
        "entries": run_entries(path, packed=True, exact=exact),
        "environment": required_environment(opset_of(path)),
        "nodes": nodes_by_operation(graph),
    }
    process.ask(do="load", graph=task.name, path=str(path.absolute()), options=options)
    return EngineGraph(process, task, tuple(outputs), wide)
