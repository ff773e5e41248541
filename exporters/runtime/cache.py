"""A decoder's state in buffers that graphs read and write in place: keys and values of all tokens, and constant-size states.

Shapes: batch B, key-value heads G, past length P, new tokens T, room for S tokens in total, head width K.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
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


class Buffers:
    """Sets of buffers for the same tensors: every call reads one and writes one, which is the same if there is only one.

    The set that :meth:`hold` marks is not written until the next mark, for which a third set is allocated.
    """

    def __init__(self, allocate: Callable[[], list[OrtValue]], count: int) -> None:
        self._allocate = allocate
        self.sets = [allocate() for _ in range(count)]
        self._addresses = [_addresses(tensors) for tensors in self.sets]
        self._read, self._written = 0, count - 1
        self._held: int | None = None

    @property
    def read(self) -> list[int]:
        """The addresses of the tensors that the next call reads."""
        return self._addresses[self._read]

    @property
    def written(self) -> list[int]:
        """The addresses of the tensors that the next call writes."""
        return self._addresses[self._written]

    def advance(self) -> None:
        """Read what the last call wrote."""
        self._turn(self._written)

    def hold(self) -> None:
        """Mark the set that the next call reads."""
        if len(self.sets) == 2:
            self.sets.append(self._allocate())
            self._addresses.append(_addresses(self.sets[-1]))
        self._held = self._read

    def reset(self) -> None:
        """Read the marked set again."""
        assert self._held is not None
        self._turn(self._held)

    def _turn(self, read: int) -> None:
        self._read = read
        if len(self.sets) > 1:
            self._written = next(index for index in range(len(self.sets)) if index not in (read, self._held))


class StepCache:
    """The base class of caches, with ``past`` tokens and ``room`` slots.

    The states named in ``constant`` have a constant size: they begin with zeros and alternate between two buffers. ``windows``: the
    slots of caches that hold a window alone, by the name of their length.
    """

    copies: int
    """The number of full-length buffers per tensor of keys or values."""

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
        self._memory = Buffers(
            lambda: [self._allocated(slot, self._shape(slot, room)) for slot in self._slots], self.copies
        )
        self._states = Buffers(
            lambda: [self._allocated(slot, self._state_shape(slot)) for slot in self._constant], 2
        )
        self._marked = 0
        for states in self._states.sets:
            self._write(self._constant, states, 0)

    def bind(self, binding: Any, new: int) -> None:
        """Bind past and present for a call with ``new`` tokens."""
        raise NotImplementedError

    def advance(self, new: int) -> None:
        """Add tokens of the last call to the past: all, or the first ``new`` if the cache is ``divisible``."""
        self.past += new
        self._memory.advance()
        self._states.advance()

    @property
    def divisible(self) -> bool:
        """Whether the latest tokens can be dropped: a buffer has a slot for each token, and there is no other state."""
        return self.copies == 1 and not self._constant and not self._windows

    def mark(self) -> None:
        """Remember the past, for :meth:`rewind`."""
        self._marked = self.past
        if not self.divisible:
            self._memory.hold()
            self._states.hold()

    def rewind(self, past: int) -> int:
        """Drop the tokens after the first ``past``, or after the marked ones if the cache is not ``divisible``; return the
        number of tokens left."""
        self.past = past if self.divisible else self._marked
        if not self.divisible:
            self._memory.reset()
            self._states.reset()
        return self.past

    @property
    def state_bytes(self) -> int:
        """The bytes of constant-size states, summed over rows and layers."""
        return sum(tensor.tensor_size_in_bytes() for tensor in self._states.sets[0])

    def token_bytes(self, tokens: int) -> int:
        """The bytes of the given number of tokens per row, summed over rows and layers; a window has no more than its slots."""
        return sum(math.prod(self._shape(slot, tokens, most=True)) * slot.width for slot in self._slots)

    def clear(self) -> None:
        """Fill with zeros, for graphs that multiply masked slots: uninitialized memory may hold NaN."""
        self._set(0)

    def fill(self, past: int) -> None:
        """Pretend that ``past`` tokens were read: their keys and values, and the states, are ones."""
        self._set(1)
        for states in self._states.sets:
            self._write(self._constant, states, 1)
        self.past = past

    def _set(self, number: int) -> None:
        for tensors in self._memory.sets:
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
        for slot, read, written in zip(self._slots, self._memory.read, self._memory.written, strict=True):
            self._bind_input(binding, slot, self._shape(slot, past), read)
            self._bind_output(binding, slot, self._shape(slot, present), written)

    def _bind_states(self, binding: Any) -> None:
        """Bind the constant-size states."""
        for slot, read, written in zip(self._constant, self._states.read, self._states.written, strict=True):
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


class SharedCache(StepCache):
    """A cache whose graph appends new tokens in place, B G S K: one buffer holds past and present."""

    copies = 1
    _bound: Any = None

    def bind(self, binding: Any, new: int) -> None:
        if self._bound is not binding:  # the same buffers in every call
            self._bind(binding, self.room, self.room)
            self._bound = binding
        self._bind_states(binding)


def _addresses(tensors: Iterable[OrtValue]) -> list[int]:
    return [tensor.data_ptr() for tensor in tensors]


CACHES: dict[str, type[StepCache]] = {"growing": GrowingCache, "shared": SharedCache}
