"""Functions and modules as ONNX graphs, run in ONNX Runtime beside PyTorch."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import onnx
import onnx_ir as ir
import onnxruntime
import torch
from onnx import numpy_helper
from torch import Tensor, nn

from exporters.data.data_file import lay_out
from exporters.data.proto import model_proto
from exporters.graph.fusing import fuse
from exporters.graph.translate import Lowering
from exporters.graph.values import Graph
from exporters.layouts import DEFAULT, LAYOUTS
from exporters.target.environment import required_environment
from exporters.target.targets import TARGETS, Target
from zoo.tracing.symbols import Placeholder, Symbols
from zoo.tracing.tracer import Tracer

DTYPES = {"f": torch.float32, "h": torch.float16, "i": torch.int64, "s": torch.int32, "b": torch.bool}
SIZES = ({"B": 1, "T": 1}, {"B": 2, "T": 3}, {"B": 3, "T": 8})
"""What the symbols of an input stand for, run after run."""


def placeholder(name: str, text: str) -> Placeholder:
    """An input as text: ``f B T 8`` is a float tensor of two symbolic sizes and a static one."""
    kind, *dims = text.split()
    return Placeholder(name, DTYPES[kind], tuple(int(dim) if dim.isdigit() else dim for dim in dims))


class Module(nn.Module):
    """A function of its inputs as a module, with parts that it may use."""

    def __init__(self, function: Callable[..., Any], **parts: nn.Module) -> None:
        super().__init__()
        self.function = function
        self.part = nn.ModuleDict(parts)

    def forward(self, *values: Any) -> Any:
        return self.function(*list(self.part.values()), *values)


def named(result: Any) -> dict[str, Any]:
    """Outputs by name."""
    return {f"y{i}": value for i, value in enumerate(result)} if isinstance(result, tuple) else {"y": result}


def target_of(name: str) -> Target:
    """A target, such as ``cpu``, or ``portable-27`` in an opset that was asked for."""
    name, _, opset = name.partition("-")
    return TARGETS[name].in_opset(int(opset) if opset else None)


def graph_of(module: nn.Module, *inputs: str, target: str = "portable") -> ir.Model:
    """The ONNX model of a module for a target, with its weights inside."""
    given = [placeholder(f"x{i}", text) for i, text in enumerate(inputs)]
    symbols = Symbols.of(given, ())
    call = lambda model, values: named(model(*values.values()))  # noqa: E731
    traced = Tracer(module, symbols).run(call, given)
    if target != "portable":
        fuse(traced, target_of(target), None)
    model = message(Lowering(traced, target_of(target), symbols, given).graph("tested"))
    values = dict(module.named_parameters())
    for tensor in model.graph.initializer:
        if tensor.external_data:
            tensor.CopyFrom(numpy_helper.from_array(values[tensor.name].detach().numpy(), tensor.name))
    return ir.from_proto(model)


def message(graph: Graph) -> onnx.ModelProto:
    """The model of a graph, with its weights in a data file."""
    return model_proto(graph, lay_out(graph.parameters.values()), LAYOUTS[DEFAULT].data)


def draw(given: Placeholder, sizes: Mapping[str, int], generator: torch.Generator) -> Tensor:
    """Random values for an input."""
    shape = [dim if isinstance(dim, int) else sizes[dim] for dim in given.dims]
    if given.dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(given.dtype)
    low, high = (0, 2) if given.dtype == torch.bool else (-5, 6)
    return torch.randint(low, high, shape, generator=generator).to(given.dtype)


def runtime(model: ir.Model) -> Callable[..., dict[str, Tensor]]:
    """ONNX Runtime on a model: a function of its inputs in order."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    data = ir.to_proto(model).SerializeToString()
    os.environ.update(required_environment(model.opset_imports[""]))
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])

    def run(*values: Tensor) -> dict[str, Tensor]:
        names = [value.name for value in session.get_inputs()]
        feeds = {name: value.contiguous().numpy() for name, value in zip(names, values, strict=True)}
        outputs = [output.name for output in session.get_outputs()]
        return {
            name: torch.from_numpy(array)
            for name, array in zip(outputs, session.run(None, feeds), strict=True)
        }

    return run


def assert_same(
    module: nn.Module | Callable[..., Any],
    *inputs: str,
    sizes: Any = SIZES,
    target: str = "portable",
    **parts: nn.Module,
) -> ir.Model:
    """Assert that a module computes the same in ONNX Runtime at several sizes; the graph."""
    module = module if isinstance(module, nn.Module) else Module(module, **parts)
    module.eval()
    model = graph_of(module, *inputs, target=target)
    run = runtime(model)
    generator = torch.Generator().manual_seed(0)
    for case in sizes:
        values = [draw(placeholder("x", text), case, generator) for text in inputs]
        with torch.no_grad():
            expected = named(module(*values))
        got = run(*values)
        assert got.keys() == expected.keys()
        for name, value in expected.items():
            assert got[name].shape == value.shape, (case, got[name].shape, value.shape)
            assert got[name].dtype == value.dtype, (case, got[name].dtype, value.dtype)
            tolerance = 2e-3 if value.dtype == torch.float16 else 2e-6
            torch.testing.assert_close(got[name], value, atol=tolerance, rtol=tolerance, equal_nan=True)
    return model
