"""The time in which the studio answers an edit, in the browser: 30 edits of each of some presets, one after the other.

``python -m benchmarks studio`` measures one preset in five; ``python -m benchmarks.studio --every 1`` measures all. Wall time runs
from the edit to the part on the screen. Processor time is that of the server's two processes, which a busy machine can measure, too.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.result import Result
from benchmarks.studio_page import studio_page
from cli.studio.controls import changed, stepped
from cli.studio.link import fragment_of
from cli.studio.opened_spec import opened
from cli.studio.typed_spec import TypedSpec
from specs.base.errors import SpecPath, UserError
from specs.language.preset_files import preset_names
from specs.language.reading import read_text

EDITS = 30
EVERY = 5
"""One preset in so many is measured."""

STAGES = {
    "counts": "counts",
    "drawing": "counts and drawing",
    "training": "FLOPs, cache and training",
    "devices": "every figure",
}
"""What is on the screen after a part of the answer."""

GOAL, LARGEST_GOAL = 0.150, 0.500
"""Seconds: for 95 % of the presets, and for the slowest."""

KINDS: dict[str, tuple[str, ...]] = {
    "norm.kind": ("rms_norm", "layer_norm"),
    "position.kind": ("rope", "sinusoidal", "learned"),
    "activation": ("silu", "gelu", "relu"),
    "feed_forward.kind": ("gated", "mlp"),
}
"""Other kinds, by the end of a path that a text states."""


@dataclass(frozen=True)
class Latency:
    """The medians of a preset's edits in seconds: wall time by stage, and the processor time of the server's processes."""

    name: str
    edits: int
    wall: dict[str, float]
    processor: float


def edits(text: str, folder: Path) -> Iterator[str]:
    """Texts that differ in one value, each from the text before: numbers that step, heads among them, and other kinds."""
    while True:
        before = text
        for path, value in list(_values(read_text(text, "").data, ())):
            try:
                edited = _edited(text, path, value, folder)
                if edited is None or edited == text:
                    continue
                TypedSpec.read(edited, folder)
            except UserError:
                continue
            text = edited
            yield text
        if text == before:
            return


def _edited(text: str, path: SpecPath, value: Any, folder: Path) -> str | None:
    if type(value) is int:
        return stepped(text, path, value, 1, folder)
    where = ".".join(map(str, path))
    others = next((kinds for end, kinds in KINDS.items() if where.endswith(end)), ())
    other = next((kind for kind in others if kind != value), None)
    return other and changed(text, path, other, folder)


def _values(data: Any, path: SpecPath) -> Iterator[tuple[SpecPath, Any]]:
    if isinstance(data, dict):
        for key, value in data.items():
            if key not in ("name", "summary", "source", "year", "expect", "initialization"):
                yield from _values(value, (*path, key))
    elif path:
        yield path, data


def measured(names: Sequence[str], count: int = EDITS) -> Iterator[Latency]:
    """The latencies of some presets, in one warm server and one browser."""
    with studio_page() as (page, address), tempfile.TemporaryDirectory() as folder:
        for name in names:
            text = opened(name).text
            page.open(f"{address}#base={name}&opened={name}&{fragment_of(text)}")
            page.rest()
            found = [page.edit(edited) for edited in itertools.islice(edits(text, Path(folder)), count)]
            wall = {
                part: statistics.median(shown[part] for shown, _ in found if part in shown) for part in STAGES
            }
            yield Latency(name, len(found), wall, statistics.median(processor for _, processor in found))


def percentile(values: Sequence[float], share: float) -> float:
    """The value that a share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


def results(latencies: Sequence[Latency] | None = None) -> Iterator[Result]:
    """The median preset, the 95th percentile and the slowest of each stage, against the goal."""
    found = list(measured(preset_names()[::EVERY])) if latencies is None else latencies
    stages = {
        **{f"{words}, wall": [each.wall[part] for each in found] for part, words in STAGES.items()},
        "every figure, processor": [each.processor for each in found],
    }
    for words, values in stages.items():
        for share, goal in ((0.5, GOAL), (0.95, GOAL), (1.0, LARGEST_GOAL)):
            value = percentile(values, share)
            of = {0.5: "median", 0.95: "95th percentile", 1.0: f"slowest of {len(found)}"}[share]
            yield Result(
                f"studio: {words}, {of}", f"{value * 1e3:.0f} ms", f"{goal * 1e3:.0f} ms", value / goal, 1.0
            )


def main() -> None:
    """Measure and print, and write every preset's latencies to a file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studio", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="PRESET", help="these presets, in place of one in so many"
    )
    parser.add_argument("--every", type=int, default=EVERY, metavar="N", help="measure one preset in N")
    parser.add_argument("--edits", type=int, default=EDITS, metavar="N", help="edits of each preset")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the latencies of each preset, in seconds"
    )
    options = parser.parse_args()
    found: list[Latency] = []
    for latency in measured(options.names or preset_names()[:: options.every], options.edits):
        found.append(latency)
        wall = ", ".join(f"{part} {seconds * 1e3:.0f}" for part, seconds in latency.wall.items())
        print(
            f"{latency.name}: {latency.edits} edits, {wall}; processor {latency.processor * 1e3:.0f} ms",
            flush=True,
        )
        if options.json:
            options.json.write_text(json.dumps([asdict(each) for each in found], indent=1), encoding="utf-8")
    for result in results(found):
        print(f"{result.name}: {result.figure} (goal {result.baseline}, {result.verdict})")


if __name__ == "__main__":
    main()
