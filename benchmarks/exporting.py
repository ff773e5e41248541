"""Exporting whole models: peak memory without verification, size on disk, and time with verification."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.process import PYTHON, ZOO, in_turn, run
from benchmarks.result import Result

IMPORTS = "import torch, torch.fx, onnx, onnxruntime, pydantic, typer, rich, yaml"

BILLION = ["gpt2-xl", "--set", "d_model=2048", "--set", "decoder.layers=24", "--set", "decoder.block.attention.heads=16",
           "--set", "decoder.block.feed_forward.hidden=8192"]  # fmt: skip
"""A spec with 1.3 billion parameters."""


def results() -> Iterator[Result]:
    """Memory at most that of the imports plus 200 MB; GPT-2 in 498 MB; at most half the time of a peer."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        base = run([PYTHON, "-c", IMPORTS])
        for label, spec in (("bert-base", ["bert-base"]), ("1.3 billion parameters", BILLION)):
            usage = run([ZOO, "export", *spec, "--no-verify", "-o", str(place / "out")])
            more = (usage.peak - base.peak) / 1e6
            yield Result(
                f"zoo export --no-verify, {label}: memory",
                f"{usage.peak / 1e6:.0f} MB",
                f"{base.peak / 1e6:.0f} MB to import",
                more / 200,
                1.0,
            )
        run([ZOO, "export", "gpt2", "--no-verify", "-o", str(place / "gpt2")])
        size = (place / "gpt2" / "model.onnx.data").stat().st_size
        yield Result("gpt2: weights on disk", f"{size / 1e6:.1f} MB", "498 MB", size / 498e6, 1.0)
        yield from _against_peer(place)


def _against_peer(place: Path) -> Iterator[Result]:
    """Exporting a BERT-base checkpoint, verified, against ``mobius build`` of it (in the environment MOBIUS)."""
    mobius = os.environ.get("MOBIUS")
    if mobius is None:
        print(
            "mobius build: not compared; set MOBIUS to the mobius command of an environment with mobius-onnx"
        )
        return
    checkpoint = place / "checkpoint"
    run(
        [
            PYTHON,
            "-c",
            f"from transformers import *; BertModel(BertConfig()).save_pretrained({str(checkpoint)!r})",
        ]
    )
    theirs, ours = in_turn(
        [
            [mobius, "build", "--config", str(checkpoint), str(place / "mobius")],
            [ZOO, "export", "bert-base", "--weights", str(checkpoint), "-o", str(place / "zoo")],
        ],
        runs=5,
    )
    yield Result(
        "zoo export bert-base, verified",
        f"{ours.seconds:.2f} s, {ours.peak / 1e6:.0f} MB",
        f"{theirs.seconds:.2f} s, {theirs.peak / 1e6:.0f} MB with mobius build, not verified",
        ours.seconds / theirs.seconds,
        0.5,
    )
