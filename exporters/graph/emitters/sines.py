"""Emitters of sines and cosines, for targets whose own are too coarse for rotary angles.

WGSL allows an absolute error of 2^-11 for angles up to pi, and guarantees nothing beyond (WebGPU Shading Language, 15.7.4); its
sums and products are rounded correctly.
"""

from __future__ import annotations

import math

import torch

from exporters.graph.emitters.registry import Call, Operand, emits
from exporters.graph.values import Value

TURNS = (3.125, 2.0**-6, 31 * 2.0**-15, 22 * 2.0**-20)
"""Pi in parts of at most 5 bits: products of a part with whole and half numbers below 2^18 are exact in float32."""

REST = math.pi - sum(TURNS)

SERIES = tuple((-1) ** k / math.factorial(2 * k + 1) for k in range(7))
"""Taylor coefficients of the sine, accurate to 1e-9 up to a quarter turn."""


@emits(torch.sin, "sin")
def _sin(call: Call, x: Operand) -> Value:
    return _sine(call, x) if call.graph.target.coarse_sines else _own(call, "Sin", x)


@emits(torch.cos, "cos")
def _cos(call: Call, x: Operand) -> Value:
    return _sine(call, x, quarter=True) if call.graph.target.coarse_sines else _own(call, "Cos", x)


def _own(call: Call, name: str, x: Operand) -> Value:
    result: Value = call.op(name, call.value(x, call.result.dtype))
    return result


def _sine(call: Call, x: Operand, *, quarter: bool = False) -> Value:
    """The sine of an angle, or with ``quarter`` its cosine.

    Computed from the distance to the nearest multiple of pi; the sign alternates from one multiple to the next.
    """

    def number(value: float) -> Value:
        return call.graph.constant(value, torch.float32)

    angle = call.value(x, torch.float32)
    halves = call.op("Mul", angle, number(1 / math.pi))
    count = call.op("Floor", halves if quarter else call.op("Add", halves, number(0.5)))
    centre = call.op("Add", count, number(0.5)) if quarter else count
    rest = angle
    for part in (*TURNS, REST):
        rest = call.op("Sub", rest, call.op("Mul", centre, number(part)))
    square = call.op("Mul", rest, rest)
    sine = number(SERIES[-1])
    for factor in SERIES[-2::-1]:
        sine = call.op("Add", call.op("Mul", sine, square), number(factor))
    sine = call.op("Mul", sine, rest)
    pairs = call.op("Mul", call.op("Floor", call.op("Mul", count, number(0.5))), number(2.0))
    odd = call.op("Mul", call.op("Sub", count, pairs), number(2.0))
    sign = call.op("Sub", odd, number(1.0)) if quarter else call.op("Sub", number(1.0), odd)
    return call.cast(call.op("Mul", sine, sign), torch.float32, call.result.dtype)
