"""BERT-base in ONNX Runtime: against the peers' files, in int8, and on batches of ragged rows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.checkpoints import checkpoint
from benchmarks.peers import HERE, MISSING, MOBIUS, OPTIMUM, mobius_build, optimum_export
from benchmarks.process import PYTHON, export, run
from benchmarks.result import Result, milliseconds
from benchmarks.side_by_side import medians, running
from exporters.benchmark.process import OURS
from exporters.benchmark.workload import Workload, WorkloadGrid
from specs.language.load import load

PRESET = "bert-base"
ONE = Workload("encode", (128,))
FLAGS = Path("/proc/cpuinfo")
DOT_PRODUCTS = ("avx512_vnni", "avx_vnni", "asimddp")
"""CPU flags of vectorized 8-bit multiplication."""


def results() -> Iterator[Result]:
    """Compare speeds; bounds: fp32 1.0 times the fastest peer, int8 2 times fp32, ragged rows 1.5 times padded ones."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = checkpoint(PRESET, folder)
        models = {
            label: (OURS, _exported(source, folder, *label.split()))
            for label in ("portable fp32", "cpu fp32", "cpu int8")
        }
        drive = [PYTHON, str(HERE / "drive_onnx.py")]
        peers = {}
        if OPTIMUM.present:
            run(optimum_export(source, "feature-extraction", folder / "optimum"))
            peers["optimum"] = (drive, folder / "optimum" / "model.onnx")
        if MOBIUS.present:
            run(mobius_build(source, folder / "mobius"))
            peers["mobius"] = (drive, folder / "mobius" / "model.onnx")
        with running({**models, **peers}) as workers:
            times = medians(workers, ONE)
            (ragged,) = WorkloadGrid((8,), ("16-128",)).workloads(load(PRESET))
            rows = medians({label: workers[label] for label in ("portable fp32", "cpu fp32")}, ragged)
        fastest = min(peers, key=lambda peer: times[peer], default=None)
        yield Result(
            f"{PRESET}, {ONE.label}, cpu fp32",
            milliseconds(times["cpu fp32"]),
            MISSING if fastest is None else f"{milliseconds(times[fastest])}, the file of {fastest}",
            None if fastest is None else times[fastest] / times["cpu fp32"],
            1.0,
            at_most=False,
        )
        yield Result(
            f"{PRESET}, {ONE.label}, cpu int8",
            milliseconds(times["cpu int8"]),
            f"{milliseconds(times['cpu fp32'])} in fp32",
            times["cpu fp32"] / times["cpu int8"],
            2.0 if _has_dot_products() else 1.15,
            at_most=False,
        )
        yield Result(
            f"{PRESET}, {ragged.label}, cpu fp32: sequences",
            f"{ragged.batch / rows['cpu fp32']:.1f} a second",
            f"{ragged.batch / rows['portable fp32']:.1f} a second, padded",
            rows["portable fp32"] / rows["cpu fp32"],
            1.5,
            at_most=False,
        )


def _exported(source: Path, folder: Path, target: str, precision: str) -> Path:
    options = ["--precision", precision, "--weights", str(source)]
    return export(PRESET, target, folder / f"{target}-{precision}", *options)


def _has_dot_products() -> bool:
    """Whether the operating system reports vectorized 8-bit multiplication."""
    return FLAGS.exists() and any(flag in FLAGS.read_text() for flag in DOT_PRODUCTS)
