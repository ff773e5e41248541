"""Roofline bounds: the minimum time of calls on a device, and the sequences that fit into its memory.

A call takes at least as long as its matrix products at peak rate, and at least as long as reading its weights and cache
once (Williams et al., 2009). If a model exceeds one device's memory, several share the work evenly, at no cost of
communication.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from specs.files.device import Device, FloatPrecision

COMPUTED_IN: dict[str, FloatPrecision] = {
    "fp32": "fp32",
    "fp16": "fp16",
    "bf16": "bf16",
    "int8": "fp16",
    "int4": "fp16",
    "q4f16": "fp16",
}
"""The precision of matrix products for each weight precision; int8 and int4 weights are multiplied in half precision."""

THIS = "this"
"""The name of this machine as a device."""

WIDEST: FloatPrecision = "fp32"
"""A wider precision to compute in, if a device is faster in it or has no other."""

MOST = 2**40
"""Upper limit of batch sizes and contexts."""

_GUESSES = 3
"""The number of guesses before bisection: a cache with windows has a bend for each."""


@dataclass(frozen=True)
class Demand:
    """The demand of a call: FLOPs of matrix products, bytes to read and write, and tokens."""

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
    """The minimum seconds of a call, the resource that bounds it, and the resulting tokens per second."""

    seconds: float
    bound: Literal["compute", "memory"]
    tokens_per_second: float


@dataclass(frozen=True)
class Room:
    """The memory need of sequences: bytes by batch and length, and the model's longest sequence."""

    need: Callable[[int, int], int]
    batch: int
    length: int
    longest: int | None

    def largest_batch(self, memory: float) -> int:
        """The largest batch of the length that fits; 0 if a single sequence does not."""
        return _largest(lambda batch: self.need(batch, self.length), memory, MOST)

    def largest_context(self, memory: float) -> int:
        """The longest single sequence that fits, up to the model's context length."""
        return _largest(lambda length: self.need(1, length), memory, self.longest or MOST)


def _largest(need: Callable[[int], int], memory: float, most: int) -> int:
    """The largest number up to ``most`` whose need, which grows with it, fits; 0 if none does.

    Needs are nearly linear, so a line through the needs of two numbers finds the place; bisection where it does not.
    """
    if need(most) <= memory:
        return most
    if need(1) > memory:
        return 0
    low, high = 1, most
    for _ in range(_GUESSES):
        used = need(low)
        step = need(low + 1) - used
        if used + step > memory:
            return low
        guess = min(low + int((memory - used) // step), high - 1) if step else high - 1
        low, high = (guess, high) if need(guess) <= memory else (low, guess)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if need(middle) <= memory else (low, middle)
    return low


@dataclass(frozen=True)
class Roofline:
    """A model on ``count`` devices; ``roofs`` is None if the device's speed is unknown."""

    device: Device
    count: int
    roofs: Mapping[str, Roof] | None
    largest_batch: int
    largest_context: int

    @property
    def fits_any_context(self) -> bool:
        """Whether sequences of every length fit."""
        return self.largest_context >= MOST

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
    """The bounds of some calls on the fewest devices that hold the model."""
    count = max(1, math.ceil(room.need(room.batch, room.length) / device.memory))
    count = 1 if device.name == THIS else count  # a machine has one
    rate = best_rate(device, precision)
    roofs = rate and {
        name: _roof(demand, count * rate, count * device.bandwidth) for name, demand in demands.items()
    }
    memory = count * device.memory
    return Roofline(device, count, roofs or None, room.largest_batch(memory), room.largest_context(memory))


def best_rate(device: Device, precision: FloatPrecision) -> float | None:
    """FLOPs per second in a precision, or in a wider one if that is faster; None if unknown."""
    return max((device.flops[dtype] for dtype in (precision, WIDEST) if dtype in device.flops), default=None)


def _roof(demand: Demand, rate: float, bandwidth: float) -> Roof:
    computing, reading = demand.flops / rate, demand.bytes / bandwidth
    seconds = max(computing, reading)
    return Roof(seconds, "compute" if computing > reading else "memory", demand.tokens / seconds)
