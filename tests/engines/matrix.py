"""Portable means portable: every structure on every engine in every precision: ``python -m tests.engines matrix``.

Interrupted, it goes on where it was. Each of a number of rounds runs structures of every family in every precision, so that the results
of a part of them say something of all; slow engines come after the others. The page is written from the results that there are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from exporters.target.runtimes import version_key
from exporters.verification.engines.engine import Engine
from exporters.verification.engines.find import engines_here, interpreter_of
from exporters.verification.engines.process import kept_processes
from exporters.verification.engines.table import RUNTIME_VERSION
from tests.engines.matrix_page import PRECISIONS, Results, write_page
from tests.engines.subject import WHOLE, Kind, shown_by
from tests.exporters.reduced_presets import structures

OLDEST = "1.20.1"
"""The oldest version of ONNX Runtime that is run; every newer one that is installed is run, too."""

UNVERSIONED = ("onnxruntime", "cuda")
"""Engines that are left out: the installed ONNX Runtime, which is one of the versions, and the one that needs a GPU."""

SLOW = ("webgpu",)
"""Engines that compile shaders for each file: they run after the others."""

ROUNDS = 8
"""The rounds; structures of one family follow one another by name, so that each round has others of it."""


def engines_of(precision: str) -> Iterator[Engine]:
    """The engines to run in a precision, of those that are installed."""
    every = [each for each in engines_here() if each.shows == "computes" and each.speaks_for("portable")]
    for engine in every:
        version = RUNTIME_VERSION.fullmatch(engine.name)
        old = version is not None and version_key(version[1]) < version_key(OLDEST)
        if not (old or engine.name in UNVERSIONED) and interpreter_of(engine) is not None:
            yield replace(engine, exact_forms=False)


def run(place: Path) -> None:
    """Run what has no result yet in ``place``, and write the page."""
    done = read_results(place)
    with place.open("a", encoding="utf-8") as file, kept_processes():
        for kind, slow in [*((kind, False) for kind in kinds()), *((kind, True) for kind in kinds())]:
            found = done.setdefault((kind.preset, kind.precision), {})
            engines = [each for each in engines_of(kind.precision) if (each.name in SLOW) is slow]
            if missing := [each for each in engines if each.name not in found]:
                new = cells(kind, missing)
                found |= new
                file.write(
                    json.dumps({"preset": kind.preset, "precision": kind.precision, "engines": new}) + "\n"
                )
                file.flush()
                wrong = {name: cell["words"][:70] for name, cell in new.items() if _failed(cell)}
                print(kind, wrong, flush=True)
    write_page(done)


def kinds() -> Iterator[Kind]:
    """Every structure in every precision, in rounds."""
    every = structures()
    for start in range(ROUNDS):
        for precision in reversed(PRECISIONS):
            yield from (Kind(preset, "portable", precision, (WHOLE,)) for preset in every[start::ROUNDS])


def read_results(place: Path) -> Results:
    """The results of earlier runs."""
    done: Results = {}
    for line in place.read_text("utf-8").splitlines() if place.is_file() else ():
        each = json.loads(line)
        done.setdefault((each["preset"], each["precision"]), {}).update(each["engines"])
    return done


def cells(kind: Kind, engines: list[Engine]) -> dict[str, Any]:
    """What each engine shows of a kind; a failure before that ends no run."""
    try:
        return {name: asdict(result) for name, result in shown_by(kind, engines).items()}
    except Exception as error:
        words = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        return {each.name: {"version": "", "outcome": "not tried", "words": words} for each in engines}


def _failed(cell: dict[str, Any]) -> bool:
    return bool(cell["outcome"] == "failed")
