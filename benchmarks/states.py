"""Attention, a hybrid and a pure state model of equal width and depth: steps after more and more tokens, and a long prompt.

They are compared with transformers, eager, and with mobius' file; and a prompt with as many single steps.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.checkpoints import checkpoint
from benchmarks.peers import HERE, MISSING, MOBIUS, mobius_build
from benchmarks.process import PYTHON, export, run
from benchmarks.result import Result, milliseconds, speedup
from benchmarks.side_by_side import medians, running
from exporters.benchmark.process import OURS
from exporters.benchmark.workload import Workload

NARROW = ("d_model=512", "vocab_size=2048", "expect={}")
HEADS = ("heads=8", "kv_heads=2", "head_dim=64")
MODELS = {
    "attention": (
        "qwen3-0.6b",
        (
            "decoder.layers=8",
            "decoder.block.feed_forward.hidden=1536",
            *(f"decoder.block.attention.{heads}" for heads in HEADS),
        ),
    ),
    "hybrid": (
        "qwen3.5-0.8b-text",
        (
            "decoder.layers=[{pattern: [{use: linear_attention, repeat: 3}, {}], repeat: 2}]",
            "decoder.block.feed_forward.hidden=1536",
            "decoder.blocks.linear_attention.mixer.heads=8",
            "decoder.blocks.linear_attention.mixer.key_heads=8",
            "decoder.blocks.linear_attention.mixer.key_width=64",
            "decoder.blocks.linear_attention.mixer.value_width=64",
            "position.dimensions=16",
            *(f"decoder.block.attention.{heads}" for heads in HEADS),
        ),
    ),
    "state": ("mamba2-130m", ("decoder.layers=16", "decoder.block.mixer.heads=16")),
}
PASTS = (128, 1024, 8192)
PROMPT = 1024
TRANSFORMERS = [PYTHON, str(HERE / "drive_transformers.py")]
DECODER = [PYTHON, str(HERE / "drive_decoder.py")]
BUILT_BY_MOBIUS = ("attention", "hybrid")
"""The models that mobius 0.1.0 builds; its Mamba-2 stops at a field that its configs lack."""
FLAT = 1.15
"""The most that a step of a pure state model may slow down from 128 tokens to 8,192."""


def results() -> Iterator[Result]:
    """Compare speeds; bounds: never slower than transformers or, on cpu, mobius' file; steps of the state model flat; chunks
    faster than steps."""
    with tempfile.TemporaryDirectory() as name:
        for kind, (preset, changes) in MODELS.items():
            yield from _of(kind, preset, (*NARROW, *changes), Path(name) / kind)


def _of(kind: str, preset: str, changes: tuple[str, ...], folder: Path) -> Iterator[Result]:
    source = checkpoint(preset, folder, *changes)
    assignments = [part for change in changes for part in ("--set", change)]
    models = {"transformers": (TRANSFORMERS, source)}
    if kind in BUILT_BY_MOBIUS and MOBIUS.present:
        run(mobius_build(source, folder / "mobius"))
        models["mobius"] = (DECODER, folder / "mobius" / "model.onnx")
    for target in ("cpu", "portable"):
        options = ["--logits", "last", "--weights", str(source)]
        models[target] = (OURS, export(preset, target, folder / target, *assignments, *options))
    with running(models) as workers:
        steps = {past: medians(workers, Workload("step", (1,), past)) for past in PASTS}
        for past, times in steps.items():
            for target in ("cpu", "portable"):
                yield speedup(
                    f"{kind}, step after {past:,}, {target}",
                    times[target],
                    times["transformers"],
                    "transformers",
                )
            yield from _beside_mobius(kind, f"step after {past:,}", times)
        if kind == "state":
            for target in ("cpu", "portable"):
                first, last = (steps[past][target] for past in (PASTS[0], PASTS[-1]))
                name = f"{kind}, {target}: step after {PASTS[-1]:,} to one after {PASTS[0]}"
                yield Result(name, milliseconds(last), milliseconds(first), last / first, FLAT)
        prompt = medians(workers, Workload("prompt", (PROMPT,)))
        for target in ("cpu", "portable"):
            name = f"{kind}, prompt of {PROMPT:,}, {target}"
            yield speedup(name, prompt[target], prompt["transformers"], "transformers")
            alone = PROMPT * steps[PROMPT][target]
            yield speedup(f"{name}", prompt[target], alone, f"{PROMPT:,} steps")
        yield from _beside_mobius(kind, f"prompt of {PROMPT:,}", prompt)


def _beside_mobius(kind: str, work: str, times: Mapping[str, float]) -> Iterator[Result]:
    """Compare the file for cpu with the file of mobius, if that builds the model."""
    name = f"{kind}, {work}, cpu"
    if "mobius" in times:
        yield speedup(name, times["cpu"], times["mobius"], "the file of mobius")
    elif kind in BUILT_BY_MOBIUS:
        yield Result(name, milliseconds(times["cpu"]), MISSING, None, 1, at_most=False)
