"""What an export costs beyond its least: processor time and peak memory beside the work that no exporter can leave out."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.process import PYTHON, ZOO, in_turn, least
from benchmarks.result import Result

LEAST = """
import hashlib, shutil, sys
from pathlib import Path
import numpy, onnx, onnxruntime, pydantic, rich, torch, typer, yaml

graph, directory = map(Path, sys.argv[1:])
shutil.copy(graph, directory)
stored = [tensor.external_data for tensor in onnx.load(graph, load_external_data=False).graph.initializer]
places = [{entry.key: entry.value for entry in entries} for entries in stored if entries]
weights = [torch.empty(int(place["length"]) // 4).normal_() for place in places]
whole = hashlib.sha256()
with (directory / places[0]["location"]).open("wb", buffering=0) as file:
    for weight, place in zip(weights, places):
        data = weight.numpy()
        file.seek(int(place["offset"]))
        file.write(data)
        whole.update(data)
        hashlib.sha256(data)
del weights, weight, data
options = onnxruntime.SessionOptions()
options.add_session_config_entry("session.disable_prepacking", "1")
options.add_session_config_entry("session.intra_op.allow_spinning", "0")
session = onnxruntime.InferenceSession(directory / graph.name, options, providers=["CPUExecutionProvider"])
"""
"""Imports, drawn weights, their file with the digests of all and of each, and a session that loads it."""

RUNS = 3

BOUNDS = {"gpt2": (1.9, 1.3), "smollm2-135m": (2.0, 1.3)}
"""The largest ratios of processor time and of memory, by preset: about a fifth and an eighth above the largest on a busy machine."""


def results() -> Iterator[Result]:
    """Measure a verified export of each preset."""
    for preset, bounds in BOUNDS.items():
        with tempfile.TemporaryDirectory() as name:
            yield from _compared(preset, bounds, Path(name))


def _compared(preset: str, bounds: tuple[float, float], folder: Path) -> Iterator[Result]:
    (folder / "least").mkdir()
    command = [ZOO, "export", preset, "-o", str(folder / "out")]
    work = [PYTHON, "-c", LEAST, str(folder / "out" / "model.onnx"), str(folder / "least")]
    ours, base = in_turn([command, work], RUNS, summary=least)
    yield Result(
        f"zoo export {preset}: processor time",
        f"{ours.processor:.2f} s, verified",
        f"{base.processor:.2f} s to import, draw, write, digest and load",
        ours.processor / base.processor,
        bounds[0],
    )
    yield Result(
        f"zoo export {preset}: memory",
        f"{ours.peak / 1e6:.0f} MB, verified",
        f"{base.peak / 1e6:.0f} MB",
        ours.peak / base.peak,
        bounds[1],
    )
