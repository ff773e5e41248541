"""The least time that calls can take on a device, and what fits into its memory.

A call takes at least as long as its matrix products take at the device's best rate, and at least as long as reading its
weights and its cache once takes (Williams et al., 2009).  Where one device has too little memory, several share the
work evenly, and what they tell each other costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from specs.device import Device, FloatPrecision

COMPUTED_IN: dict[str, FloatPrecision] = {
    "fp32": "fp32",
    "fp16": "fp16",
    "bf16": "bf16",
    "int8": "fp16",
    "int4": "fp16",
}
"""The precision of matrix products with weights stored in each; weights of few bits are read, and multiplied as halves."""

THIS = "this"
"""The name of the machine at hand."""

WIDEST: FloatPrecision = "fp32"
"""What a device may compute in with weights of any precision, where that is faster or all that it has."""

MOST = 2**40
"""No batch or context is larger."""


@dataclass(frozen=True)
class Demand:
    """What a call asks of a device: FLOPs of matrix products, bytes to read and write, for so many tokens."""

    flops: int
    bytes: int
    tokens: int

    @property
    def intensity(self) -> float:
        """FLOPs per byte."""
        return self.flops / self.bytes

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {**asdict(self), "intensity": self.intensity}


@dataclass(frozen=True)
class Roof:
    """The least seconds of a call, what bounds it, and the tokens per second that come of it."""

    seconds: float
    bound: Literal["compute", "memory"]
    tokens_per_second: float


@dataclass(frozen=True)
class Room:
    """How much fits into memory: the bytes that some sequences of a length need, and the longest that the model takes."""

    need: Callable[[int, int], int]
    batch: int
    length: int
    longest: int | None

    def largest_batch(self, memory: float) -> int:
        """The most sequences of the length that fit; 0 where not one does."""
        return _largest(lambda batch: self.need(batch, self.length) <= memory, MOST)

    def largest_context(self, memory: float) -> int:
        """The longest single sequence that fits, at most as long as the model takes."""
        return _largest(lambda length: self.need(1, length) <= memory, self.longest or MOST)


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """The largest number up to ``most`` that fits, where all smaller ones do, too."""
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


@dataclass(frozen=True)
class Roofline:
    """A model on so many of a device; ``roofs`` is None where nothing is known of how fast it computes."""

    device: Device
    count: int
    roofs: Mapping[str, Roof] | None
    largest_batch: int
    largest_context: int

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "device": self.device.model_dump(),
            "count": self.count,
            "roofs": self.roofs and {name: asdict(roof) for name, roof in self.roofs.items()},
            "largest_batch": self.largest_batch,
            "largest_context": self.largest_context,
        }


def roofline(
    device: Device, precision: FloatPrecision, demands: Mapping[str, Demand], room: Room
) -> Roofline:
    """The bounds of some calls on as many of a device as hold them."""
    count = max(1, math.ceil(room.need(room.batch, room.length) / device.memory))
    count = 1 if device.name == THIS else count  # there is no other
    rate = best_rate(device, precision)
    roofs = rate and {
        name: _roof(demand, count * rate, count * device.bandwidth) for name, demand in demands.items()
    }
    memory = count * device.memory
    return Roofline(device, count, roofs or None, room.largest_batch(memory), room.largest_context(memory))


def best_rate(device: Device, precision: FloatPrecision) -> float | None:
    """FLOPs per second with weights computed in a precision, or in the widest where that is faster; None where unknown."""
    return max((device.flops[each] for each in (precision, WIDEST) if each in device.flops), default=None)


def _roof(demand: Demand, rate: float, bandwidth: float) -> Roof:
    computing, reading = demand.flops / rate, demand.bytes / bandwidth
    seconds = max(computing, reading)
    return Roof(seconds, "compute" if computing > reading else "memory", demand.tokens / seconds)
