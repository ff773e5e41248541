"""The tensors and sizes of a trace, as a model's forward sees them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch
from torch import fx
from torch.overrides import is_tensor_method_or_property

if TYPE_CHECKING:
    from zoo.tracing.tracer import Tracer


class SymbolicValue(fx.Proxy):
    """A tensor or size under trace. Rank, dtype, device and static sizes are plain Python; the rest is recorded."""

    tracer: Tracer

    @classmethod
    def __torch_function__(
        cls,
        orig_method: Any,
        types: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Record a call of torch.  A tracer has no other tracer's values, so the first one found tells where."""
        positional, named = args or (), kwargs or {}
        if isinstance(orig_method, torch._C.ScriptMethod):
            raise TypeError("a module of TorchScript has no Python code")
        if isinstance(orig_method, torch._ops.HigherOrderOperator):
            return super().__torch_function__(orig_method, types, positional, named)
        method = _is_method(orig_method)
        return _tracer_of((positional, named)).create_proxy(
            "call_method" if method else "call_function",
            orig_method.__name__ if method else orig_method,
            positional,
            named,
        )

    def __getattr__(self, name: str) -> Any:
        if name == "shape":
            return self.tracer.shape_of(self)
        if name in ("dtype", "device", "ndim"):
            return getattr(self.node.meta["info"][0], name)
        return super().__getattr__(name)

    def size(self, axis: int | None = None) -> Any:
        """``Tensor.size``."""
        shape = self.tracer.shape_of(self)
        return shape if axis is None else shape[axis]

    def dim(self) -> int:
        """``Tensor.dim``."""
        return int(self.ndim)


_is_method = functools.cache(is_tensor_method_or_property)  # which sets filters of warnings at every call


def _tracer_of(values: Any) -> Tracer:
    """The tracer of the first value under trace in a call's arguments."""
    value = _first(values)
    assert value is not None
    return value.tracer


def _first(values: Any) -> SymbolicValue | None:
    if isinstance(values, SymbolicValue):
        return values
    if isinstance(values, dict):
        return _first(tuple(values.values()))
    if isinstance(values, (tuple, list)):
        for value in values:
            if (first := _first(value)) is not None:
                return first
    return None
