"""A decoder's state in buffers that graphs read and write in place: keys and values of all tokens, and constant-size states.

Shapes: batch B, key-value heads G, past length P, new tokens T, room for S tokens in total, head width K.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from onnxruntime import OrtValue

from exporters.runtime.graph import BFLOAT16, GraphTensor, LoadedGraph
from zoo.core.state_names import present_of

_ONES: dict[int, Any] = {
    1: np.float32(1),
    2: np.uint8(1),
    3: np.int8(1),
    10: np.float16(1),
    BFLOAT16: np.uint16(0x3F80),
}
"""The value 1 for each of ONNX's element types."""


class StepCache:
    """The base class of caches, with ``past`` tokens and ``room`` slots.

    The states named in ``constant`` have a constant size: they begin with zeros and alternate between two buffers. ``windows``: the
    slots of caches that hold a window alone, by the name of their length.
    """

    copies: int
    """The number of full-length buffers per tensor of keys or values: the first is read, the last written."""

    def __init__(
        self,
        graph: LoadedGraph,
        names: Iterable[str],
        rows: int,
        room: int,
        constant: Collection[str] = (),
        windows: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.past, self.room = 0, room
        self._windows = windows
        self._device, self._rows = graph.device, rows
        slots = [graph.inputs[name] for name in names]
        self._slots = [slot for slot in slots if slot.name not in constant]
        self._constant = [slot for slot in slots if slot.name in constant]
        self._memory = [
            [self._allocated(slot, self._shape(slot, room)) for slot in self._slots]
            for _ in range(self.copies)
        ]
        self._states = [
            [self._allocated(slot, self._state_shape(slot)) for slot in self._constant] for _ in range(2)
        ]
        self._addresses = [[tensor.data_ptr() for tensor in tensors] for tensors in self._memory]
        self._state_addresses = [[tensor.data_ptr() for tensor in tensors] for tensors in self._states]
        for states in self._states:
            self._write(self._constant, states, 0)

    def bind(self, binding: Any, new: int) -> None:
        """Bind past and present for a call with ``new`` tokens."""
        raise NotImplementedError

    def advance(self, new: int) -> None:
        """Add the tokens of the last call to the past."""
        self.past += new
        self._state_addresses.reverse()

    @property
    def state_bytes(self) -> int:
        """The bytes of constant-size states, summed over rows and layers."""
        return sum(tensor.tensor_size_in_bytes() for tensor in self._states[0])

    def token_bytes(self, tokens: int) -> int:
        """The bytes of the given number of tokens per row, summed over rows and layers; a window has no more than its slots."""
        return sum(math.prod(self._shape(slot, tokens, most=True)) * slot.width for slot in self._slots)

    def clear(self) -> None:
        """Fill with zeros, for graphs that multiply masked slots: uninitialized memory may hold NaN."""
        self._set(0)

    def fill(self, past: int) -> None:
        """Pretend that ``past`` tokens were read: their keys and values, and the states, are ones."""
        self._set(1)
        for states in self._states:
            self._write(self._constant, states, 1)
        self.past = past

    def _set(self, number: int) -> None:
        for tensors in self._memory:
            self._write(self._slots, tensors, number)

    def _write(self, slots: Iterable[GraphTensor], tensors: Iterable[OrtValue], number: int) -> None:
        for slot, tensor in zip(slots, tensors, strict=True):
            values = np.full(tensor.shape(), _ONES[slot.element] * number)
            tensor.update_inplace(OrtValue.ortvalue_from_numpy_with_onnx_type(values, slot.element))

    def _allocated(self, slot: GraphTensor, shape: list[int]) -> OrtValue:
        return OrtValue.ortvalue_from_shape_and_type(shape, slot.element, self._device, 0)

    def _shape(self, slot: GraphTensor, length: int, *, most: bool = False) -> list[int]:
        """B G length K, with the slots of a window instead of the length, or instead of a larger length with ``most``."""
        _, heads, name, width = slot.dims
        slots = self._windows.get(str(name), length)
        return [self._rows, int(heads), min(length, slots) if most else slots, int(width)]

    def _state_shape(self, slot: GraphTensor) -> list[int]:
        """B and the sizes of a state."""
        return [self._rows, *map(int, slot.dims[1:])]

    def _bind(self, binding: Any, past: int, present: int) -> None:
        """Bind buffers of these lengths."""
        for slot, read, written in zip(self._slots, self._addresses[0], self._addresses[-1], strict=True):
            self._bind_input(binding, slot, self._shape(slot, past), read)
            self._bind_output(binding, slot, self._shape(slot, present), written)

    def _bind_states(self, binding: Any) -> None:
        """Bind the constant-size states."""
        for slot, read, written in zip(self._constant, *self._state_addresses, strict=True):
            shape = self._state_shape(slot)
            self._bind_input(binding, slot, shape, read)
            self._bind_output(binding, slot, shape, written)

    def _bind_input(self, binding: Any, slot: GraphTensor, shape: list[int], address: int) -> None:
        binding.bind_input(slot.name, self._device, 0, slot.element, shape, address)

    def _bind_output(self, binding: Any, slot: GraphTensor, shape: list[int], address: int) -> None:
        binding.bind_output(present_of(slot.name), self._device, 0, slot.element, shape, address)


class GrowingCache(StepCache):
    """A cache whose graph concatenates past and new tokens, B G P K -> B G (P + T) K, alternating between two buffers."""

    copies = 2

    def bind(self, binding: Any, new: int) -> None:
        self._bind(binding, self.past, self.past + new)
        self._bind_states(binding)

    def advance(self, new: int) -> None:
        super().advance(new)
        self._addresses.reverse()


class SharedCache(StepCache):
    """A cache whose graph appends new tokens in place, B G S K: one buffer holds past and present."""

    copies = 1
    _bound: Any = None

    def bind(self, binding: Any, new: int) -> None:
        if self._bound is not binding:  # the same buffers in every call
            self._bind(binding, self.room, self.room)
            self._bound = binding
        self._bind_states(binding)


CACHES: dict[str, type[StepCache]] = {"growing": GrowingCache, "shared": SharedCache}
