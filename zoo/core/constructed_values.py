"""The values that the constructor of a plugin's module gives its weights, although the module is built on the meta device."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_map

from zoo.core.facts import CONSTRUCTED
from zoo.core.tensors import weight_tensors

MOST = 2**20
"""The number of values up to which a tensor's are followed."""

_UNSET = {torch.empty, torch.empty_like, torch.empty_strided, Tensor.new_empty}


class ConstructedValues(TorchFunctionMode):
    """Repeats on the CPU what a constructor does to small tensors on the meta device.

    Values that were never set, and random ones, are unknown.
    """

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[int, tuple[Tensor, Tensor]] = {}  # by the storage on the meta device, which is held

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        inputs = [
            tensor
            for tensor in tree_flatten((args, kwargs))[0]
            if isinstance(tensor, Tensor) and tensor.is_meta
        ]
        made = isinstance(result, Tensor) and result.is_meta
        if (made or inputs) and func is not Tensor.__repr__:
            self._repeat(func, args, kwargs, inputs, result if made else None)
        return result

    def _repeat(
        self, func: Callable[..., Any], args: Any, kwargs: Any, inputs: list[Tensor], result: Tensor | None
    ) -> None:
        with torch._C.DisableTorchFunction():
            before = torch.get_rng_state()
            values, done = None, False
            with contextlib.suppress(Exception):  # whatever fails is unknown
                values, done = self._values(func, args, kwargs, inputs, result), True
            done &= torch.equal(before, torch.get_rng_state())  # otherwise drawn
            torch.set_rng_state(before)
        if not done:
            for tensor in (*inputs[:1], *([] if result is None else [result])):
                self._known.pop(_storage(tensor), None)
        elif isinstance(values, Tensor) and result is not None and _storage(result) not in self._known:
            self._known[_storage(result)] = result, values

    def _values(
        self, func: Callable[..., Any], args: Any, kwargs: Any, inputs: list[Tensor], result: Tensor | None
    ) -> object:
        """The results of a function for known values.  Raises an error where some are unknown, or too many."""
        sizes = [tensor.numel() for tensor in (*inputs, *([] if result is None else [result]))]
        if max(sizes) > MOST:
            raise ValueError(f"more than {MOST} values")
        if func in _UNSET and result is not None:
            return torch.full(result.shape, torch.nan, dtype=result.dtype)
        args, kwargs = tree_map(
            lambda tensor: self._known_values(tensor) if isinstance(tensor, Tensor) else tensor,
            (args, kwargs),
        )
        return func(*args, **kwargs | ({"device": "cpu"} if "device" in kwargs else {}))

    def _known_values(self, tensor: Tensor) -> Tensor:
        values = self._of(tensor)
        if values is None:
            raise ValueError("unknown values")
        return values

    def _of(self, tensor: Tensor) -> Tensor | None:
        """The values of a tensor; None where they are unknown."""
        if not tensor.is_meta:
            return tensor
        held, values = self._known.get(_storage(tensor), (None, None))
        if held is None or values is None:
            return None
        return values.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    def found(self, tensor: Tensor) -> Tensor | None:
        """The values of a weight; None where the constructor left some unset or drew them."""
        values = self._of(tensor)
        return None if values is None or bool(values.isnan().any()) else values.clone()


def _storage(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


@contextlib.contextmanager
def constructing() -> Iterator[Callable[[nn.Module], None]]:
    """Yield a function that tells a module, built in the block, the values that its constructor set."""
    with ConstructedValues() as values:

        def keep(module: nn.Module) -> None:
            with torch._C.DisableTorchFunction():
                modules = dict(module.named_modules())
                for name, tensor in weight_tensors(module):
                    path, _, leaf = name.rpartition(".")
                    if (value := values.found(tensor)) is not None:
                        modules[path].__dict__.setdefault(CONSTRUCTED.name, {})[leaf] = value

        yield keep
