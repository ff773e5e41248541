"""Processor time of commands that need no tensors, relative to importing their libraries."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.process import PYTHON, ZOO, in_turn
from benchmarks.result import Result

COMMANDS = (["--help"], ["list"], ["show", "bert-base"], ["validate", "bert-base"], ["schema"])


def results() -> Iterator[Result]:
    """Measure start-up; bound: twice the imports."""
    baseline = [PYTHON, "-c", "import pydantic, typer, rich, yaml"]
    base, *usages = in_turn([baseline, *([ZOO, *command] for command in COMMANDS)], runs=9)
    for command, usage in zip(COMMANDS, usages, strict=True):
        yield Result(
            f"zoo {' '.join(command)}",
            f"{usage.processor:.3f} s",
            f"{base.processor:.3f} s to import pydantic, typer, rich, yaml",
            usage.processor / base.processor,
            2.0,
        )
