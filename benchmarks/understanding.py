"""Answers about architectures, against importing torch: what they cost, how they differ, what they look like."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.process import PYTHON, ZOO, in_turn, run
from benchmarks.result import Result

MEGABYTE = 1e6


def results() -> Iterator[Result]:
    """Measure report, diff and draw; bounds: 2.5, 2 and 2 times the import of torch, 800 MB, and a page of 2 MB."""
    with tempfile.TemporaryDirectory() as name:
        page = Path(name) / "report.html"
        commands = {
            "zoo report gpt3-175b": (["report", "gpt3-175b"], 2.5),
            "zoo diff gpt2 llama-3.2-1b": (["diff", "gpt2", "llama-3.2-1b", "--json"], 2.0),
            "zoo draw gpt3-175b": (["draw", "gpt3-175b", "-o", f"{name}/drawing.svg"], 2.0),
            "zoo report gpt3-175b --html": (["report", "gpt3-175b", "--html", str(page)], 4.0),
        }
        accepted = (0, 1)  # that two models differ is a result
        base, *usages = in_turn(
            [[PYTHON, "-c", "import torch"], *([ZOO, *command] for command, _ in commands.values())],
            runs=5,
            accepted=accepted,
        )
        for (label, (_, bound)), usage in zip(commands.items(), usages, strict=True):
            ratio = usage.seconds / base.seconds
            yield Result(
                label, f"{usage.seconds:.2f} s", f"{base.seconds:.2f} s to import torch", ratio, bound
            )
        report, size = usages[0].peak, page.stat().st_size
        yield Result(
            "zoo report gpt3-175b: memory", f"{report / MEGABYTE:.0f} MB", "800 MB", report / 800e6, 1.0
        )
        yield Result("its page", f"{size / MEGABYTE:.2f} MB", "2 MB", size / 2e6, 1.0)
    yield from _trained()


def _trained() -> Iterator[Result]:
    """Measure a short training of two models; bound: 120 s."""
    small = ["--num-layers", "4", "--width", "128", "--steps", "300", "--force"]
    usage = run([ZOO, "compare", "gpt2", "--with", "position.kind=rope", *small])
    yield Result(
        "zoo compare, 4 layers, 300 steps", f"{usage.seconds:.0f} s", "120 s", usage.seconds / 120, 1.0
    )
