"""The entry of an operation, and the table of all entries.

An operation is a function, or a method by its name. Operations with the same properties share one entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from torch import fx

from specs.base.errors import PluginError
from zoo.ops.flops import Flops
from zoo.ops.saved import GradientCall, SavedTensor
from zoo.ops.tensor_info import info_on_meta
from zoo.ops.tokens import Mixing, TokenAxes

CALLS = ("call_function", "call_method")
"""The kinds of nodes that are operations."""


def never(node: fx.Node) -> bool:
    """False for every call."""
    return False


def always(node: fx.Node) -> bool:
    """True for every call."""
    return True


@dataclass(frozen=True)
class Operation:
    """The properties of an operation.

    shape: from the call's arguments, in which tensors are :class:`zoo.ops.tensor_info.TensorInfo`, to its result.
        Raises ValueError, TypeError or IndexError for arguments that torch rejects.
    flops: from the result and the arguments to :class:`zoo.ops.flops.Flops`.
    saved: the tensors that autograd saves for the backward pass.
    mixing: whether a call mixes the tokens of a sequence.
    shares_memory: whether the result of a call shares memory with its first argument.
    keeps_order: whether the axes of a result lie in memory as those of the first argument of its shape do, not one after the other.
    device_only: whether tensor arguments give only the device of the result.
    emitter: the module that registers a plugin's ONNX emitter; zoo's own emitters are always registered.
    """

    shape: Callable[..., Any]
    flops: Callable[..., Flops]
    saved: Callable[[GradientCall], Iterable[SavedTensor]]
    mixing: Callable[[fx.Node, TokenAxes], Mixing]
    shares_memory: Callable[[fx.Node], bool] = never
    keeps_order: bool = False
    device_only: bool = False
    emitter: str | None = None


_operations: dict[Any, Operation] = {}


def register_operation(*targets: Any, **fields: Any) -> None:
    """Add one entry for functions and method names; ``fields`` are the fields of :class:`Operation`.

    Raises :class:`specs.base.errors.PluginError` if a target already has an entry.
    """
    entry = Operation(**fields)
    for target in targets:
        if target in _operations:
            raise PluginError(f"operation {target_name(target)} already has an entry")
        _operations[target] = entry


def operation_of(target: Any) -> Operation | None:
    """The entry of a traced function or method name, or None."""
    return _operations.get(target)


def operations() -> dict[Any, Operation]:
    """All entries, by function or method name."""
    return dict(_operations)


def target_name(target: Any) -> str:
    """The name of a traced function or method in messages."""
    return target if isinstance(target, str) else getattr(target, "__name__", str(target))


def result_info(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Shape and dtype of a call's result, from arguments in which tensors are :class:`TensorInfo`.

    An operation without an entry runs on meta tensors. (Meta kernels would work for all operations, but the first one costs a
    second of imports.)
    """
    entry = operation_of(target)
    return info_on_meta(target, args, kwargs) if entry is None else entry.shape(*args, **kwargs)
