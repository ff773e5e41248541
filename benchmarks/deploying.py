"""From a checkpoint to a directory of ONNX files, ours verified, theirs not: time and peak memory of the whole process."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.checkpoints import SMOLLM, checkpoint
from benchmarks.peers import GENAI, MISSING, MOBIUS, OPTIMUM, genai_build, mobius_build, optimum_export
from benchmarks.process import ZOO, Usage, in_turn
from benchmarks.result import Result

TASKS = {
    "bert-base": "feature-extraction",
    "gpt2": "text-generation-with-past",
    "t5-small": "text2text-generation-with-past",
    SMOLLM: "text-generation-with-past",
}
"""The task that optimum exports, by preset."""


def results() -> Iterator[Result]:
    """Compare with the fastest peer; bound: half its time and half its memory."""
    for preset, task in TASKS.items():
        with tempfile.TemporaryDirectory() as name:
            yield from _compared(preset, task, Path(name))


def _compared(preset: str, task: str, folder: Path) -> Iterator[Result]:
    source = checkpoint(preset, folder)
    peers = {}
    if MOBIUS.present:
        peers["mobius build"] = mobius_build(source, folder / "mobius")
    if OPTIMUM.present:
        peers["optimum"] = optimum_export(source, task, folder / "optimum")
    if GENAI.present and preset == SMOLLM:
        peers["genai builder"] = genai_build(source, "fp32", folder / "genai")
    ours = [ZOO, "export", preset, "--weights", str(source), "-o", str(folder / "zoo")]
    mine, *theirs = in_turn([ours, *peers.values()], runs=3)
    fastest = min(zip(theirs, peers, strict=True), key=lambda pair: pair[0].seconds, default=None)
    yield _result(f"zoo export {preset}, verified: time", mine, fastest, "seconds")
    yield _result(f"zoo export {preset}, verified: memory", mine, fastest, "peak")


def _result(name: str, mine: Usage, fastest: tuple[Usage, str] | None, figure: str) -> Result:
    if fastest is None:
        return Result(name, _told(mine, figure), MISSING, None, 0.5)
    usage, peer = fastest
    ratio = getattr(mine, figure) / getattr(usage, figure)
    return Result(name, _told(mine, figure), f"{_told(usage, figure)} with {peer}", ratio, 0.5)


def _told(usage: Usage, figure: str) -> str:
    return f"{usage.seconds:.2f} s" if figure == "seconds" else f"{usage.peak / 1e6:.0f} MB"
