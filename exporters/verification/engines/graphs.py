"""Graphs loaded in an engine, with the interface of graphs loaded in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch import Tensor

from exporters.target.environment import required_environment
from exporters.target.session_options import opset_of, run_entries
from exporters.verification.engines.process import Array, EngineError, EngineProcess
from exporters.verification.runtime_outputs import JUNK, RefusalError
from zoo.core.state_names import present_of
from zoo.tracing.task import Task


@dataclass(frozen=True)
class EngineGraph:
    """A graph loaded in an engine.

    ``outputs`` has the shapes of the outputs in order, None for symbolic dims; a ``wide`` graph takes float32 instead of half
    floats.
    """

    process: EngineProcess
    task: Task
    outputs: Mapping[str, Sequence[int | None]]
    wide: bool = False

    def __call__(self, feeds: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return its outputs by name, given those ``feeds`` that it takes."""
        wanted = {placeholder.name for placeholder in self.task.inputs}
        taken = {name: self.array(tensor) for name, tensor in feeds.items() if name in wanted}
        try:
            outputs = self.process.run(self.task.name, taken)
            self._check(outputs)
        except EngineError as error:
            raise EngineRefusalError(error) from None
        return {name: torch.from_numpy(outputs[name]) for name in self.outputs}

    def _check(self, outputs: Mapping[str, Array]) -> None:
        """Raise :class:`EngineError` for outputs that are missing or differ from the graph in rank or sizes."""
        for name, dims in self.outputs.items():
            if name not in outputs:
                raise EngineError(f"no output {name}")
            shape = outputs[name].shape
            if len(shape) != len(dims) or any(d not in (None, n) for d, n in zip(dims, shape, strict=True)):
                declared = " x ".join("?" if dim is None else str(dim) for dim in dims)
                raise EngineError(f"{name} has shape {shape}, and the graph states {declared}")

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
        """A tensor as an input array of the engine."""
        wide = tensor.float() if self.wide and tensor.is_floating_point() else tensor
        return np.ascontiguousarray(wide.numpy())


def nodes_by_operation(graph: onnx.GraphProto) -> dict[str, list[str]]:
    """The names of a graph's nodes by operation."""
    nodes = dict[str, list[str]]()
    for node in graph.node:
        nodes.setdefault(node.op_type, []).append(node.name)
    return nodes


class EngineRefusalError(RefusalError):
    """An engine's refusal, with the node that it names."""

    def __init__(self, error: EngineError) -> None:
        super().__init__(error.words)
        self.node = error.node


def load_graph(process: EngineProcess, path: Path, task: Task, *, wide: bool, exact: bool) -> EngineGraph:
    """Load a graph in an engine. Raises :class:`exporters.verification.engines.process.EngineError`."""
    graph = onnx.load(path, load_external_data=False).graph
    outputs = {
        output.name: [
            dim.dim_value if dim.HasField("dim_value") else None for dim in output.type.tensor_type.shape.dim
        ]
        for output in graph.output
    }
    options = {
        "data": data_files(graph),
        "entries": run_entries(path, packed=True, exact=exact),
        "environment": required_environment(opset_of(path)),
        "nodes": nodes_by_operation(graph),
    }
    process.ask(do="load", graph=task.name, path=str(path.absolute()), options=options)
    return EngineGraph(process, task, outputs, wide)


def data_files(graph: onnx.GraphProto) -> list[str]:
    """The names of the files next to a graph that hold its weights."""
    entries = (entry for weight in graph.initializer for entry in weight.external_data)
    return sorted({entry.value for entry in entries if entry.key == "location"})
