"""Exporting whole models: processor time beside PyTorch's exporter; without verification, peak memory and size on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.process import PYTHON, ZOO, in_turn, run
from benchmarks.result import Result

IMPORTS = "import torch, torch.fx, onnx, onnxruntime, pydantic, typer, rich, yaml"

BILLION = ["gpt2-xl", "--set", "d_model=2048", "--set", "decoder.layers=24", "--set", "decoder.block.attention.heads=16",
           "--set", "decoder.block.feed_forward.hidden=8192"]  # fmt: skip
"""A spec with 1.3 billion parameters."""


def beside_torch(runs: int = 3) -> Result:
    """An export of GPT-2 with its verification, against ``torch.onnx.export`` of the same module without; bound: a quarter."""
    with tempfile.TemporaryDirectory() as name:
        command = [ZOO, "export", "gpt2", "-o", str(Path(name, "out"))]
        ours, theirs = in_turn([command, [*command, "--via", "torch", "--no-verify"]], runs)
    return Result(
        "zoo export gpt2: processor time",
        f"{ours.processor:.1f} s, verified",
        f"{theirs.processor:.1f} s, torch.onnx.export alone",
        ours.processor / theirs.processor,
        0.25,
    )


def results() -> Iterator[Result]:
    """Measure exports; further bounds: memory of the imports plus 200 MB, and 498 MB on disk for GPT-2."""
    yield beside_torch()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        base = run([PYTHON, "-c", IMPORTS])
        for label, spec in (("bert-base", ["bert-base"]), ("1.3 billion parameters", BILLION)):
            usage = run([ZOO, "export", *spec, "--no-verify", "-o", str(folder / "out")])
            more = (usage.peak - base.peak) / 1e6
            yield Result(
                f"zoo export --no-verify, {label}: memory",
                f"{usage.peak / 1e6:.0f} MB",
                f"{base.peak / 1e6:.0f} MB to import",
                more / 200,
                1.0,
            )
        run([ZOO, "export", "gpt2", "--no-verify", "-o", str(folder / "gpt2")])
        size = (folder / "gpt2" / "model.onnx.data").stat().st_size
        yield Result("gpt2: weights on disk", f"{size / 1e6:.1f} MB", "498 MB", size / 498e6, 1.0)
