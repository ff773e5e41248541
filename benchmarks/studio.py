"""The processor time in which the studio answers an edit: 30 edits for each of some presets, in the server's process.

Processor time is what a quiet machine takes, and what a busy one can measure.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.result import Result
from cli.studio.answer import Answers, Question
from cli.studio.controls import stepped
from cli.studio.opened_spec import opened
from specs.base.errors import SpecError, SpecPath
from specs.language.catalog import preset_names
from specs.language.reading import read_text

EDITS = 30
EVERY = 12
"""One preset in so many is measured."""

FIRST = "drawing"
"""The part with which both the counts and the drawing are shown."""

GOAL, LARGEST_GOAL = 0.150, 0.500
"""Seconds of processor time: for 95 % of the presets, and for the slowest."""


@dataclass(frozen=True)
class Latency:
    """The median seconds of processor time of the edits of a preset: until the counts, the drawing, and every figure are there."""

    name: str
    counts: float
    drawn: float
    whole: float


def edits(text: str, folder: Path) -> Iterator[str]:
    """Texts in which one number after the other is stepped, each from the text before."""
    while True:
        before = text
        for path, value in list(_numbers(read_text(text, "").data, ())):
            try:
                edited = stepped(text, path, value, 1, folder)
            except SpecError:
                continue
            if edited is not None and edited != text:
                text = edited
                yield text
        if text == before:
            return


def _numbers(data: Any, path: SpecPath) -> Iterator[tuple[SpecPath, float]]:
    if isinstance(data, dict):
        for key, value in data.items():
            if key not in ("year", "expect", "initialization"):
                yield from _numbers(value, (*path, key))
    elif type(data) is int and path:
        yield path, data


def latency(answers: Answers, name: str, count: int = EDITS) -> Latency:
    """Edit a preset some times."""
    text = opened(name).text
    times: dict[str, list[float]] = {"counts": [], FIRST: [], "whole": []}
    _ = list(answers.parts(Question(text, name, "", 1, None, "fp16")))
    for _, edited in zip(range(count), edits(text, answers.folder), strict=False):
        began = time.process_time()
        for part, _ in answers.parts(Question(edited, name, "", 1, None, "fp16")):
            if part in times:
                times[part].append(time.process_time() - began)
        times["whole"].append(time.process_time() - began)
    medians = {part: statistics.median(seconds) for part, seconds in times.items()}
    return Latency(name, medians["counts"], medians[FIRST], medians["whole"])


def percentile(values: list[float], share: float) -> float:
    """The value that a share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


def measured(names: list[str], count: int = EDITS) -> list[Latency]:
    """The latencies of some presets, in one warm process."""
    with tempfile.TemporaryDirectory() as folder:
        answers = Answers(Path(folder))
        latency(answers, "tiny-gpt", 3)
        return [latency(answers, name, count) for name in names]


def results() -> Iterator[Result]:
    """Measure one preset in twelve."""
    found = measured(preset_names()[::EVERY])
    for what, values in (
        ("counts", [each.counts for each in found]),
        ("counts and drawing", [each.drawn for each in found]),
        ("every figure", [each.whole for each in found]),
    ):
        for share, goal in ((0.95, GOAL), (1.0, LARGEST_GOAL)):
            value = percentile(values, share)
            of = f"slowest of {len(found)}" if share == 1 else "95th percentile"
            yield Result(
                f"studio: {what}, {of}", f"{value * 1e3:.0f} ms", f"{goal * 1e3:.0f} ms", value / goal, 1.0
            )
