"""Keys and values of the tokens so far, in memory of our own that graphs read and write where it is.

Shapes: batch B, key-value heads G, past length P, new tokens T, room for S tokens in all, head width K.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from onnxruntime import OrtValue

from exporters.runtime.graph import BFLOAT16, Graph, Slot

_ONES: dict[int, Any] = {
    1: np.float32(1),
    2: np.uint8(1),
    3: np.int8(1),
    10: np.float16(1),
    BFLOAT16: np.uint16(0x3F80),
}
"""What one is, by ONNX's number of the element type."""


class Cache:
    """What all caches are: ``past`` tokens are in it, and there is room for ``room``."""

    copies: int
    """How many memories of full length there are for each tensor: the first is read, the last written."""

    def __init__(self, graph: Graph, names: Iterable[str], rows: int, room: int) -> None:
        self.past, self.room = 0, room
        self._device, self._rows = graph.device, rows
        self._slots = [graph.inputs[name] for name in names]
        self._presents = [slot.name.replace("past_key_values", "present") for slot in self._slots]
        self._memory = [[self._allocated(slot) for slot in self._slots] for _ in range(self.copies)]
        self._addresses = [[tensor.data_ptr() for tensor in tensors] for tensors in self._memory]

    def bind(self, binding: Any, new: int) -> None:
        """Bind past and present for a call with so many new tokens."""
        raise NotImplementedError

    def advance(self, new: int) -> None:
        """Keep what the call wrote."""
        self.past += new

    @property
    def token_bytes(self) -> int:
        """The bytes of one token of all rows, in all layers."""
        return sum(math.prod(self._shape(slot, 1)) * slot.width for slot in self._slots)

    def clear(self) -> None:
        """Put zeros everywhere, for graphs that multiply what they mask: memory as it comes may hold what is no number."""
        self._set(0)

    def fill(self, past: int) -> None:
        """Pretend that so many tokens were read: ones in place of their keys and values."""
        self._set(1)
        self.past = past

    def _set(self, number: int) -> None:
        for tensors in self._memory:
            for slot, tensor in zip(self._slots, tensors, strict=True):
                values = np.full(self._shape(slot, self.room), _ONES[slot.element] * number)
                tensor.update_inplace(OrtValue.ortvalue_from_numpy_with_onnx_type(values, slot.element))

    def _allocated(self, slot: Slot) -> OrtValue:
        shape = self._shape(slot, self.room)
        return OrtValue.ortvalue_from_shape_and_type(shape, slot.element, self._device, 0)

    def _shape(self, slot: Slot, length: int) -> list[int]:
        """B G length K."""
        _, heads, _, width = slot.dims
        return [self._rows, int(heads), length, int(width)]

    def _bind(self, binding: Any, past: int, present: int) -> None:
        """Bind memory of these lengths."""
        tensors = zip(self._slots, self._presents, self._addresses[0], self._addresses[-1], strict=True)
        for slot, name, read, written in tensors:
            binding.bind_input(slot.name, self._device, 0, slot.element, self._shape(slot, past), read)
            binding.bind_output(name, self._device, 0, slot.element, self._shape(slot, present), written)


class GrowingCache(Cache):
    """A cache whose graph joins past and new tokens, B G P K -> B G (P + T) K: two memories take turns."""

    copies = 2

    def bind(self, binding: Any, new: int) -> None:
        self._bind(binding, self.past, self.past + new)

    def advance(self, new: int) -> None:
        super().advance(new)
        self._addresses.reverse()


class SharedCache(Cache):
    """A cache whose graph writes new tokens behind those before them, B G S K: one memory is past and present."""

    copies = 1
    _bound: Any = None

    def bind(self, binding: Any, new: int) -> None:
        if self._bound is not binding:  # nothing changes from call to call
            self._bind(binding, self.room, self.room)
            self._bound = binding


CACHES: dict[str, type[Cache]] = {"growing": GrowingCache, "shared": SharedCache}
