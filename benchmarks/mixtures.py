"""Mixtures of experts in ONNX Runtime and in training: 32 experts, 4 of them chosen for each token, in six layers.

They are compared with a dense model of the same active parameters, with every expert computing every token, and with the
file of onnxruntime-genai's builder.

A comparison with a dense model asks what active parameters cost, so neither model may gain from its size. In steps, both read
more weights than a processor's cache holds: 220 MB in float32, since part of a smaller dense model would stay in it, and the
mixture's would not (at half the width, steps take 1.5 to 1.6 times those of the dense model). In training, a step has as many
tokens as it takes for products to outweigh the weights, of which the mixture has eight times as many, and their gradients: 4,096,
or 512 for each expert (at 1,024 tokens, it takes 1.6 times as long).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.checkpoints import GPT_OSS, checkpoint, with_mxfp4_experts
from benchmarks.every_expert import export_every_expert
from benchmarks.peers import GENAI, MISSING, genai_build
from benchmarks.process import export, run
from benchmarks.result import Result, milliseconds, speedup
from benchmarks.side_by_side import medians, running
from benchmarks.training import BATCH, LENGTH, step_seconds
from exporters.benchmark.process import OURS
from exporters.benchmark.workload import Workload

PRESET = "qwen3-30b-a3b"
NARROW = (
    "d_model=512",
    "vocab_size=2048",
    "decoder.block.attention.heads=8",
    "decoder.block.attention.kv_heads=2",
)
SIX_LAYERS = ("decoder.layers=6", "decoder.block.attention.head_dim=64")
EXPERTS = tuple(
    f"decoder.block.feed_forward.{field}" for field in ("experts=32", "top_k=4", "expert.hidden=512")
)
SWIGLU = "{kind: gated, hidden: 2048, activation: silu, bias: false}"
MIXTURE = (*NARROW, *SIX_LAYERS, *EXPERTS)
DENSE = (*NARROW, *SIX_LAYERS, f"decoder.block.feed_forward={SWIGLU}")
WIDE = ("d_model=1024", "decoder.block.attention.heads=16", "decoder.block.attention.kv_heads=4")
ALL_CHOSEN = "decoder.block.feed_forward.top_k=32"

LOCAL_AND_WHOLE = "decoder.layers=[{pattern: [{use: local}, {repeat: 1}], repeat: 3}]"
PEER_MIXTURE = (*NARROW, LOCAL_AND_WHOLE, "decoder.block.feed_forward.expert.hidden=512")

PRECISIONS = ("fp32", "int4")
STEP, PROMPT = Workload("step", (1,), 128), Workload("prompt", (256,))
EVERY, EVERY_INT4 = "every expert", "every expert, int4"


def results() -> Iterator[Result]:
    """Compare speeds.

    Bounds: steps at most 1.3 times those of the dense model, and 4 times as fast as with every expert; prompts twice as fast;
    never slower in standard ONNX, nor than onnxruntime-genai; training steps at most 1.5 times the dense model's. Experts in
    int4 in standard ONNX, which has to dequantize them, are compared with every expert dequantized.
    """
    with tempfile.TemporaryDirectory() as name:
        yield from _exported(Path(name))
    for precision in PRECISIONS:
        with tempfile.TemporaryDirectory() as name:
            yield from _beside_peer(precision, Path(name))
    yield from _trained()


def _exported(folder: Path) -> Iterator[Result]:
    models = {}
    for precision in PRECISIONS:
        for label, target, changes in (
            ("cpu", "cpu", MIXTURE), ("portable", "portable", MIXTURE), ("dense", "cpu", DENSE),
        ):  # fmt: skip
            models[f"{label} {precision}"] = folder / f"{label}-{precision}"
            _export(PRESET, (*changes, *WIDE), target, precision, folder / f"{label}-{precision}")
    models[EVERY] = export_every_expert(models["cpu fp32"], folder / "every")
    models[EVERY_INT4] = folder / "every-int4"
    _export(PRESET, (*MIXTURE, *WIDE, ALL_CHOSEN), "portable", "int4", models[EVERY_INT4])
    with running({label: (OURS, path) for label, path in models.items()}) as workers:
        for work, faster in ((STEP, 4), (PROMPT, 2)):
            times = medians(workers, work)
            for precision in PRECISIONS:
                if work == STEP:
                    dense = f"dense {precision}"
                    yield _slowdown(
                        f"mixture, {work.label}, cpu {precision}", times[f"cpu {precision}"], times[dense]
                    )
                for target, bound in (("cpu", faster), ("portable", 1)):
                    label = f"{target} {precision}"
                    every = EVERY_INT4 if label == "portable int4" else EVERY
                    yield speedup(f"mixture, {work.label}, {label}", times[label], times[every], every, bound)


def _beside_peer(precision: str, folder: Path) -> Iterator[Result]:
    source = checkpoint(GPT_OSS, folder, *PEER_MIXTURE)
    _export(GPT_OSS, PEER_MIXTURE, "cpu", precision, folder / "zoo", "--weights", str(source))
    models = {"zoo": (OURS, folder / "zoo")}
    if GENAI.present:
        checkpoint_of_peer = source if precision == "fp32" else with_mxfp4_experts(source)
        run(genai_build(checkpoint_of_peer, precision, folder / "genai"))
        models["genai"] = (GENAI.driver(), folder / "genai")
    with running(models) as workers:
        for work in (STEP, PROMPT):
            times = medians(workers, work)
            name = f"{GPT_OSS}, narrow, {work.label}, cpu {precision}"
            if GENAI.present:
                yield speedup(name, times["zoo"], times["genai"], "onnxruntime-genai", 1)
            else:
                yield Result(name, milliseconds(times["zoo"]), MISSING, None, 1, at_most=False)


def _trained() -> Iterator[Result]:
    mixed, dense, every = step_seconds(PRESET, MIXTURE, DENSE)
    yield _slowdown(f"mixture, training step, {BATCH} x {LENGTH}", mixed, dense, 1.5)
    yield speedup(f"mixture, training step, {BATCH} x {LENGTH}", mixed, every, EVERY, 1)


def _export(
    preset: str, changes: tuple[str, ...], target: str, precision: str, directory: Path, *more: str
) -> None:
    assignments = [part for change in changes for part in ("--set", change)]
    export(preset, target, directory, *assignments, "--precision", precision, "--logits", "last", *more)


def _slowdown(name: str, ours: float, dense: float, bound: float = 1.3) -> Result:
    return Result(name, milliseconds(ours), f"{milliseconds(dense)}, dense", ours / dense, bound)
