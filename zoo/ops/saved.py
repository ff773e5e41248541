"""The tensors that autograd saves for the backward pass, and the common rules of operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from torch import fx

from zoo.ops.tensor_info import TensorInfo, byte_count

NodeInfos = Mapping[fx.Node, Any]
"""TensorInfo, size or tuple of every value of a graph, with numbers for its symbols."""


@dataclass(frozen=True)
class SavedTensor:
    """A tensor saved for the backward pass of the call ``by``: a value of the graph, or a tensor made by the call.

    ``extra`` gives the bytes of a tensor made by the call, and distinguishes several tensors of one call.
    """

    by: fx.Node
    value: fx.Node
    extra: Callable[[NodeInfos], int] | None = None

    def bytes_at(self, infos: NodeInfos) -> int:
        """Its size in bytes."""
        return self.extra(infos) if self.extra else byte_count(infos[self.value])


@dataclass(frozen=True)
class GradientCall:
    """A call through which gradients flow.

    ``trained``: the values that get a gradient; ``root`` finds the value that owns another's memory; ``fused``: attention and
    RMS norm run as one kernel each.
    """

    node: fx.Node
    trained: Set[fx.Node]
    root: Callable[[fx.Node], fx.Node]
    fused: bool

    @property
    def args(self) -> Any:
        """The positional arguments; tensors and sizes are nodes."""
        return self.node.args

    @property
    def tensors(self) -> list[fx.Node]:
        """The tensors among the arguments."""
        return [node for node in self.node.all_input_nodes if isinstance(info(node), TensorInfo)]

    def save(self, value: fx.Node) -> SavedTensor:
        """Save a value, or the value that owns its memory."""
        return SavedTensor(self.node, self.root(value))

    def make(self, size: Callable[[NodeInfos], int]) -> SavedTensor:
        """Save a tensor of ``size`` bytes made by the call."""
        return SavedTensor(self.node, self.node, size)

    def save_for_gradient(self, wanted: Any, factor: Any) -> Iterator[SavedTensor]:
        """Save ``factor`` if the other factor, ``wanted``, gets a gradient."""
        if wanted in self.trained and isinstance(factor, fx.Node) and factor in self.tensors:
            yield self.save(factor)


def info(node: fx.Node) -> Any:
    """TensorInfo, size or tuple of a node in the first of the two runs of a trace."""
    return node.meta["info"][0]


def saves_nothing(call: GradientCall) -> Iterable[SavedTensor]:
    """The gradient needs no values."""
    return ()


def saves_result(call: GradientCall) -> Iterator[SavedTensor]:
    """The gradient is computed from the result."""
    yield call.save(call.node)


def saves_tensors(call: GradientCall) -> Iterable[SavedTensor]:
    """The gradient is computed from the tensor arguments."""
    return map(call.save, call.tensors)


def saves_all(call: GradientCall) -> Iterator[SavedTensor]:
    """All tensor arguments and the result: an upper bound, also for operations without an entry."""
    yield from map(call.save, [*call.tensors, call.node])


def saves_first(call: GradientCall) -> Iterator[SavedTensor]:
    """Only the first argument, such as a condition or ids."""
    yield call.save(call.args[0])


def saves_other_factor(call: GradientCall) -> Iterator[SavedTensor]:
    """Each factor of a product whose counterpart gets a gradient."""
    a, b = call.args[:2]
    yield from call.save_for_gradient(a, b)
    yield from call.save_for_gradient(b, a)
