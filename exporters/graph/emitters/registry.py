"""The registry of emitters, and the arguments that they receive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import Any

import torch
from torch import fx

from exporters.graph.builder import Dim, GraphBuilder
from exporters.graph.dtypes import DTYPES
from exporters.graph.values import Value
from specs.base.plugins import import_foreign
from zoo.ops import operation_of
from zoo.ops.tensor_info import TensorInfo, promoted
from zoo.tracing.symbols import SizePair

Emitter = Callable[..., Any]
_emitters: dict[Any, Emitter] = {}


def emits(*targets: Any) -> Callable[[Emitter], Emitter]:
    """Register the decorated function as the emitter of these functions and method names.

    It is called with a :class:`Call` and the function's own arguments, with tensors and sizes as :class:`Operand`, and
    returns the ONNX value of the result. It raises NotImplementedError with a reason for unsupported arguments.
    """

    def add(emitter: Emitter) -> Emitter:
        _emitters.update(dict.fromkeys(targets, emitter))
        return emitter

    return add


def emitter_of(target: Any) -> Emitter | None:
    """Return the emitter of a traced function or method name, or None.

    Raises :class:`specs.base.errors.PluginError` if the module that a plugin names cannot be imported.
    """
    entry = operation_of(target)
    if target not in _emitters and entry is not None and entry.emitter is not None:
        import_foreign(entry.emitter)
    return _emitters.get(target)


def emitters() -> dict[Any, Emitter]:
    """Return all emitters by function or method name."""
    return dict(_emitters)


@dataclass(frozen=True)
class Operand:
    """An argument of an emitter: its ONNX value, and its info in both tracing runs, where sizes are plain numbers."""

    value: Value
    info: tuple[Any, Any]

    @property
    def is_tensor(self) -> bool:
        """Whether this is a tensor rather than a size."""
        return isinstance(self.info[0], TensorInfo)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of a tensor."""
        dtype: torch.dtype = self.info[0].dtype
        return dtype

    @property
    def ndim(self) -> int:
        """The rank of a tensor."""
        return len(self.info[0].shape)

    @property
    def dims(self) -> list[SizePair]:
        """The sizes of a tensor."""
        return list(zip(self.info[0].shape, self.info[1].shape, strict=True))

    def static(self, axis: int) -> int:
        """Return the static size of an axis. Raises NotImplementedError if it varies with the inputs."""
        first, second = self.dims[axis]
        if first != second:
            raise NotImplementedError(
                f"Axis {axis} must have the same size for every input: make it constant"
            )
        return first


@dataclass(frozen=True)
class Call:
    """The call being emitted: the graph, and the info of the result."""

    graph: GraphBuilder
    node: fx.Node

    @property
    def result(self) -> Operand:
        """The result, without a value yet."""
        return Operand(None, self.node.meta["info"])  # type: ignore[arg-type]

    def promoted(self, a: Any, b: Any) -> torch.dtype:
        """Return the dtype in which torch computes with two operands or numbers."""
        return promoted(*(operand.info[0] if isinstance(operand, Operand) else operand for operand in (a, b)))

    def op(self, name: str, *inputs: Value | None, **attributes: Any) -> Any:
        """Add an operation to the graph and return its result."""
        return self.graph.op(name, *inputs, **attributes)

    def value(self, operand: Any, dtype: torch.dtype) -> Value:
        """Return a tensor's value in a dtype, or a number as a constant of that dtype."""
        if not isinstance(operand, Operand):
            return self.graph.constant(operand, dtype)
        if not operand.is_tensor:  # a size in arithmetic with a tensor
            return self.cast(self.graph.number(operand.value), torch.int64, dtype)
        return self.cast(operand.value, operand.dtype, dtype)

    def cast(self, value: Value, dtype: torch.dtype, wanted: torch.dtype) -> Value:
        """Return a value in another dtype; weights are stored in the new dtype instead."""
        if dtype == wanted:
            return value
        weight = self.graph.declared(value)
        if (
            weight is not None and len(weight.shape) < 2
        ):  # other operations may read the matrix in its own dtype
            return self.graph.converted(weight, wanted)
        return self.op("Cast", value, to=int(DTYPES[wanted]))

    def size(self, size: Any) -> Value:
        """Return a size, given as a number or an operand, as a vector of one int64."""
        value = size.value if isinstance(size, Operand) else size
        return value if isinstance(value, Value) else self.graph.ints(int(value))

    def dim(self, size: Any) -> Dim:
        """Return a size for ``reshape``."""
        return tuple(size.info) if isinstance(size, Operand) else int(size)


@cache
def _refused(emitter: Emitter, positional: int, named: tuple[str, ...]) -> str:
    """The reason why an emitter does not take some arguments after the call; empty if it takes them."""
    try:
        signature(emitter).bind(None, *(None,) * positional, **dict.fromkeys(named))
    except TypeError as error:
        return str(error)
    return ""


def emit(graph: GraphBuilder, node: fx.Node, values: Mapping[fx.Node, Any]) -> Any:
    """Write one traced call, given the ``values`` of its arguments, and return its value.

    Raises NotImplementedError if no emitter writes it, or not with these arguments.
    """
    emitter = emitter_of(node.target)
    if emitter is None:
        raise NotImplementedError(
            "Write one with exporters.graph.emitters.emits"
            if operation_of(node.target)
            else "Register it with zoo.ops.register_operation and an emitter"
        )

    def operand(argument: fx.Node) -> Any:
        return Operand(values[argument], argument.meta["info"])

    args, kwargs = fx.map_arg((node.args, node.kwargs), operand)
    call = Call(graph, node)
    if fault := _refused(emitter, len(args), tuple(kwargs)):
        raise NotImplementedError(f"{fault.capitalize()}: write an emitter that takes it")
    return emitter(call, *args, **kwargs)


def learn(graph: GraphBuilder, value: Value, node: fx.Node) -> None:
    """Record a result as the holder of sizes that no input has."""
    first, second = node.meta["info"]
    if isinstance(first, tuple):
        return  # single results are recorded when they are taken
    if isinstance(first, TensorInfo):
        for axis, sizes in enumerate(zip(first.shape, second.shape, strict=True)):
            graph.learn(sizes, value, axis)
    else:
        graph.learn((first, second), value)
