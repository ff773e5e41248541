"""Tracing of a module as a graph of functional calls, with torch.fx.

Calls are traced at the level of ``torch.nn.functional``, without further decomposition. Semantic functions of
:mod:`zoo.functional` are traced into their bodies, and their results record the call, so that a target with an operation for it
can replace the body.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.fx.proxy import GraphAppendingTracer

from specs.base.errors import UserError, option_name, reason_of
from zoo.core.caller import calling_line, line_of, line_text
from zoo.core.tensors import weight_tensors
from zoo.ops import TensorInfo, operation_of, result_info
from zoo.ops.creation import size
from zoo.ops.indexing import refuse_clamped_slice
from zoo.ops.operation import CALLS
from zoo.tracing.observed import observed
from zoo.tracing.symbolic_value import SymbolicValue
from zoo.tracing.symbols import Placeholder, Symbols

_PLAIN = frozenset({int, float, bool, str, type(None), type(...), torch.dtype, torch.device})
"""The types of arguments that are recorded as they are."""

GraphCall = Callable[[Any, Mapping[str, Any]], Mapping[str, Any]]
"""The call to trace: from a model and its inputs by name to its outputs by name."""


@dataclass(frozen=True)
class SemanticCall:
    """A call of a semantic function whose body was traced; tensors and sizes are nodes.

    ``index``: which of several results a node is.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    index: int = 0


class UntraceableError(UserError):
    """A component's forward cannot be traced; the message names the module and the line."""


def node_infos(node: fx.Node) -> tuple[Any, Any]:
    """Shape and dtype of a node's result in the two runs, from its arguments; one object if all of them are static."""
    static = True

    def first_of(operand: fx.Node) -> Any:
        nonlocal static
        first, second = operand.meta["info"]
        static = static and first is second
        return first

    first = result_info(node.target, *fx.map_arg((node.args, node.kwargs), first_of))
    if static:
        return first, first
    return first, result_info(
        node.target, *fx.map_arg((node.args, node.kwargs), lambda operand: operand.meta["info"][1])
    )


def is_static(node: fx.Node) -> bool:
    """Whether a value was computed from static sizes only, so that it is the same at every size of the inputs."""
    first, second = node.meta["info"]
    return first is second


class Tracer(GraphAppendingTracer):
    """Traces a call of a model.

    torch.fx would change ``nn.Module`` itself meanwhile, which costs as much as a small model's trace and holds for every
    thread.  Here the model's own modules name their calls and give their weights as values.

    The meta of each node has its ``info`` in the two runs, the ``path`` of its module, the ``line`` of code that made the call, the paths of all modules being called
    (``within``), and the semantic calls whose result it is, innermost first (``semantic_calls``).
    """

    def __init__(self, model: nn.Module, symbols: Symbols) -> None:
        super().__init__(fx.Graph())
        self.model, self.symbols = model, symbols
        self._names = {id(tensor): name for name, tensor in weight_tensors(model)}
        self._parameters: dict[str, fx.Proxy] = {}
        self._entered: tuple[str, ...] = ()
        self._failed: tuple[Exception | None, str] = None, ""
        """The last error that left a module, and the innermost module that it left."""

    def run(self, call: GraphCall, inputs: Sequence[Placeholder]) -> fx.Graph:
        """The graph of ``call(model, {name: value})``. Raises :class:`UntraceableError`."""
        try:
            with observed(self.model, self._enter, self._weight):
                outputs = dict(call(self.model, {value.name: self._placeholder(value) for value in inputs}))
            self.create_node("output", "output", (self.create_arg(outputs),), {})
            return self.graph
        except (UserError, MemoryError):
            raise
        except Exception as error:
            raise self._explained(error) from error

    def _explained(self, error: Exception) -> UntraceableError:
        return UntraceableError(
            f"{self._where(error)} cannot be traced: {type(error).__name__}: {reason_of(error)}\n"
            f"  at {line_text(line_of(error))}\n"
            f"  Remove Python control flow on tensor values, or export through torch.onnx ({option_name('via')} torch)."
        )

    def _where(self, error: Exception) -> str:
        failed, path = self._failed
        return (path if failed is error else "") or "the model"

    def _placeholder(self, placeholder: Placeholder) -> fx.Proxy:
        value: fx.Proxy = self.create_proxy("placeholder", placeholder.name, (), {})
        pairs = [self.symbols.sizes(dim) for dim in placeholder.dims]
        first, second = (TensorInfo(tuple(pair[run] for pair in pairs), placeholder.dtype) for run in (0, 1))
        value.node.meta["info"] = (first, first if first == second else second)
        return value

    def _enter(self, path: str, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        before = self._entered
        self._entered = (*before, path)
        try:
            return forward(*args, **kwargs)
        except Exception as error:
            if error is not self._failed[0]:
                self._failed = error, path
            raise
        finally:
            self._entered = before

    def _weight(self, tensor: Any) -> Any:
        """The value of a weight in the trace; what is no weight as it is."""
        name = self._names.get(id(tensor))
        if name is None:
            return tensor
        if name not in self._parameters:
            self._parameters[name] = self.create_proxy("get_attr", name, (), {})
            self._parameters[name].node.meta["info"] = (TensorInfo(tuple(tensor.shape), tensor.dtype),) * 2
            self._parameters[name].node.meta["trained"] = tensor.requires_grad
        return self._parameters[name]

    def _unknown(self, tensor: Tensor) -> str:
        """Why a tensor is no value of the trace."""
        storage = tensor.untyped_storage()._cdata
        for name, weight in weight_tensors(self.model):
            if weight.untyped_storage()._cdata == storage:
                return f"{name} is read past its module, as from state_dict(): read it as an attribute, such as self.weight"
        return "a tensor is neither an input nor a weight: make it with zoo.functional.constant"

    # Methods that torch.fx calls.

    def create_arg(self, a: Any) -> Any:
        kind = type(a)
        if kind in _PLAIN:
            return a
        if kind is SymbolicValue:
            return a.node
        if kind is tuple or kind is list:
            return kind(map(self.create_arg, a))
        if kind is dict:
            return {name: self.create_arg(value) for name, value in a.items()}
        if kind is slice:
            return slice(*map(self.create_arg, (a.start, a.stop, a.step)))
        if isinstance(a, Tensor):
            if id(a) in self._names:  # such as one of self.parameters()
                return self._weight(a).node
            raise TypeError(self._unknown(a))
        return super().create_arg(a)

    def create_node(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None, type_expr: Any = None
    ) -> fx.Node:
        """Record a call.

        Arguments are set after the node is made: torch.fx searches those it makes a node with for its own symbolic sizes,
        which takes as long as everything else.
        """
        node = self.graph.create_node(kind, target, (), {}, name or _label(self.graph, target))
        if args:
            node.args = args
        if kwargs:
            node.kwargs = kwargs
        return node

    def proxy(self, node: fx.Node) -> fx.Proxy:
        return SymbolicValue(node, self)

    def create_proxy(self, kind: str, target: Any, args: Any, kwargs: Any, *rest: Any, **options: Any) -> Any:
        if kind == "call_function" and hasattr(target, "__wrapped__") and operation_of(target) is None:
            return self._followed(target, args, kwargs)
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs))
        proxy: Any = SymbolicValue(node, self)
        meta = node.meta
        meta["path"] = self._entered[-1] if self._entered else ""
        meta["within"] = self._entered
        if target is operator.getitem:
            refuse_clamped_slice(node)
        if kind in CALLS:
            meta["line"] = calling_line()
            meta["info"] = first, second = node_infos(node)
            if isinstance(first, int) and first == second:  # a static size
                self.graph.erase_node(node)
                return first
            if isinstance(first, tuple):  # torch.split and the like
                return tuple(proxy[i] for i in range(len(first)))
        return proxy

    def _followed(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Trace the body of a semantic function, and record the call on its results."""
        results = function.__wrapped__(*args, **kwargs)
        arguments = set(map(id, (*args, *kwargs.values())))
        positional, named = fx.node.map_aggregate((args, kwargs), _node)
        for index, result in enumerate(results if isinstance(results, tuple) else (results,)):
            if isinstance(result, fx.Proxy) and id(result) not in arguments:
                result.node.meta.setdefault("semantic_calls", []).append(
                    SemanticCall(function, positional, dict(named), index)
                )
        return results

    def shape_of(self, value: SymbolicValue) -> tuple[Any, ...]:
        """The sizes of a tensor: static sizes as ints, others as recorded values."""
        first, second = value.node.meta["info"]
        return tuple(
            a if a == b else self.create_proxy("call_function", size, (value, axis), {})
            for axis, (a, b) in enumerate(zip(first.shape, second.shape, strict=True))
        )


_labels: dict[Any, str] = {}


def _label(graph: fx.Graph, target: Any) -> str:
    """The name that torch.fx gives to calls of a function or method, found once for each."""
    if target not in _labels:
        _labels[target] = graph._target_to_str(target)
    return _labels[target]


def _node(value: Any) -> Any:
    return value.node if isinstance(value, fx.Proxy) else value
