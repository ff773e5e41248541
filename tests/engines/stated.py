"""Exports state the first ONNX Runtime that computes them: a sample is run on it, ``python -m tests.engines stated``.

The sample differs from day to day. Interrupted, it goes on where it was.
"""

from __future__ import annotations

import datetime
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from exporters.graph.precisions import PRECISIONS
from exporters.target.runtimes import minimum_runtime, version_key
from exporters.target.targets import TARGETS
from exporters.verification.engines.find import interpreter_of
from exporters.verification.engines.process import kept_processes
from exporters.verification.engines.table import engine_named
from exporters.verification.result import VerificationError
from tests.engines.subject import WHOLE, Kind, graphs_of, shown_by
from tests.exporters.reduced_presets import structures

COUNT = 80
"""The number of files in a sample."""

ON_CPU = ("portable", "cpu", "cuda", "tensorrt")
"""Targets whose files the CPU provider runs."""


def run(place: Path) -> None:
    """Run a sample, with results in ``place``; exit with the files that their stated version does not compute."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    read = place.read_text("utf-8").splitlines() if place.is_file() else []
    done = [each for each in map(json.loads, read) if each["date"] == today]
    left = drawn(today)
    with place.open("a", encoding="utf-8") as file, kept_processes():
        for kind in left[len(done) :]:
            version = stated(kind)
            result = {"date": today, "kind": str(kind), "version": version, "words": words_on(kind, version)}
            done.append(result)
            file.write(json.dumps(result) + "\n")
            file.flush()
            print(kind, version, result["words"][:200], flush=True)
    wrong = [f"{each['kind']}: {each['version']}: {each['words']}" for each in done if each["words"]]
    if wrong:
        raise SystemExit("\n".join(["Exports state runtimes that do not run them:", *wrong]))


def drawn(seed: str) -> list[Kind]:
    """The sample of a seed: as many files of every target and precision."""
    chosen = random.Random(seed)
    combinations = [*_combinations()]
    kinds = list[Kind]()
    while len(kinds) < COUNT:
        target, precision = combinations[len(kinds) % len(combinations)]
        kind = Kind(chosen.choice(structures()), target, precision, (WHOLE,))
        if kind not in kinds and graphs_of(kind):
            kinds.append(kind)
    return kinds


def _combinations() -> Iterator[tuple[str, str]]:
    for target in ON_CPU:
        refused = TARGETS[target].unsupported_precisions
        yield from ((target, precision) for precision in PRECISIONS if precision not in refused)


def stated(kind: Kind) -> str:
    """The version that an export states."""
    return max(map(minimum_runtime, graphs_of(kind)), key=version_key)


def words_on(kind: Kind, version: str) -> str:
    """Why a version does not compute the files of a kind; empty where it does."""
    engine = replace(engine_named(f"onnxruntime-{version}"), exact_forms=False)
    if interpreter_of(engine) is None:
        return f"onnxruntime {version} is not installed: run `make runtimes`"
    try:
        (result,) = shown_by(kind, [engine]).values()
    except VerificationError as error:
        return f"not computed here: {str(error).splitlines()[0]}"
    return "" if result.passed else result.words
