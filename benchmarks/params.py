"""Counting 175 billion parameters, against importing torch."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.process import PYTHON, ZOO, in_turn
from benchmarks.result import Result


def results() -> Iterator[Result]:
    """Measure `zoo params`; bounds: 1.6 times the import of torch, and 700 MB."""
    base, usage = in_turn([[PYTHON, "-c", "import torch"], [ZOO, "params", "gpt3-175b"]], runs=5)
    name = "zoo params gpt3-175b"
    yield Result(
        name,
        f"{usage.seconds:.2f} s",
        f"{base.seconds:.2f} s to import torch",
        usage.seconds / base.seconds,
        1.6,
    )
    yield Result(f"{name}: peak memory", f"{usage.peak / 1e6:.0f} MB", "700 MB", usage.peak / 700e6, 1.0)
