"""This machine as a device, measured in well under a second."""

from __future__ import annotations

import os

import torch

from specs.files.device import Device, FloatPrecision
from zoo.machine.bandwidth import fastest, measure_cuda_bandwidth, measure_reading
from zoo.machine.memory import available_memory
from zoo.reports.roofline import THIS

READ = 256_000_000
"""The bytes to read when measuring bandwidth: more than processor caches hold."""

SMALL, LARGE, LARGEST = 256, 1024, 8192
"""The sizes of square matrices to multiply; a larger one is tried while the time limit allows."""

LONGEST = 0.05
"""The time limit of a matrix product, in seconds."""


def this_device(precision: FloatPrecision) -> Device:
    """The first CUDA device, or the processor: best of a few passes of reading and multiplying."""
    if torch.cuda.is_available():
        return _cuda_device(precision)
    threads = torch.get_num_threads()
    return Device(
        name=THIS,
        summary=f"{os.cpu_count()} processors, {threads} {'thread' if threads == 1 else 'threads'}, as measured",
        memory=float(available_memory()),
        bandwidth=measure_reading(threads, READ),
        flops=_product_rates(precision, "cpu", LARGE),
    )


def this_machine() -> Device:
    """The same with its rates in every precision."""
    first, second = this_device("fp16"), this_device("bf16")
    return first.model_copy(update={"flops": {**second.flops, **first.flops}})


def _cuda_device(precision: FloatPrecision) -> Device:
    properties = torch.cuda.get_device_properties(0)
    return Device(
        name=THIS,
        summary=f"{properties.name}, as measured",
        memory=float(properties.total_memory),
        bandwidth=measure_cuda_bandwidth().read,
        flops=_product_rates(precision, "cuda", LARGEST),
    )


def _product_rates(precision: FloatPrecision, device: str, largest: int) -> dict[FloatPrecision, float]:
    """FLOPs per second in a precision, and in float32, which may be faster on processors."""
    wanted: tuple[FloatPrecision, ...] = ("fp32", precision)
    return {dtype: _product_rate(dtype, device, largest) for dtype in wanted}


def _product_rate(precision: FloatPrecision, device: str, largest: int) -> float:
    """FLOPs per second of the largest square matrix product within the time limit."""
    dtype = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[precision]
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    rate = 0.0
    for side in (SMALL, largest):
        if rate and 2 * side**3 / rate > LONGEST:
            break
        matrix = torch.ones(side, side, dtype=dtype, device=device)
        rate = max(rate, 2 * side**3 / fastest(lambda: matrix @ matrix, wait))  # noqa: B023
    return rate
