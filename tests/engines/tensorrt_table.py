"""The table of what the compiler of TensorRT for RTX takes: ``python -m tests.engines tensorrt FILE``.

Every structure of the presets in every precision, with heads as wide as they are, as fused attention depends on them. FILE keeps the
results, a line each, so that an interrupted run goes on where it was.
"""

from __future__ import annotations

import json
import resource
import statistics
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from exporters.export import export
from exporters.steps.options import ExportOptions
from exporters.verification.engines.compile_export import compile_export
from exporters.verification.engines.process import EngineError
from specs.base.errors import UserError
from tests.engines.reductions import wide_heads
from tests.exporters.reduced_presets import structures
from zoo.record.manifest import read_manifest

PRECISIONS = ("int8", "int4", "fp16", "fp32", "bf16")
ARCHITECTURES = ("sm89",)

Row = dict[str, Any]


def run(place: Path) -> None:
    """Fill the cells that have no result yet, and print the table."""
    rows = [json.loads(line) for line in place.read_text("utf-8").splitlines()] if place.exists() else []
    done = {(row["preset"], row["precision"]) for row in rows}
    with place.open("a", encoding="utf-8") as file:
        for precision in PRECISIONS:
            for name in structures():
                if (name, precision) not in done:
                    rows.append(cell(name, precision))
                    file.write(json.dumps(rows[-1]) + "\n")
                    file.flush()
                    print(name, precision, rows[-1]["outcome"], rows[-1]["words"][:200], flush=True)
    print("\n".join(table(rows)))


def cell(name: str, precision: str) -> Row:
    """What the compiler does with one structure in one precision: its processor seconds, and the bytes of the export and of its engines."""
    spec = wide_heads(name)
    length = 64 if spec.decodes else None
    options = ExportOptions.of(target="tensorrt", precision=precision, cache_length=length, verify=False)
    row: Row = {"preset": name, "precision": precision, "words": "", "seconds": 0.0, "files": 0, "engines": 0}
    with TemporaryDirectory() as folder:
        begun = processor_seconds()
        try:
            place = export(spec, Path(folder) / "x", options).directory
            files = read_manifest(place).files.values()
            compile_export(place, ARCHITECTURES)
        except UserError as refusal:
            return {**row, "outcome": "refused", "words": str(refusal)}
        except EngineError as error:
            return {
                **row,
                "outcome": "failed",
                "words": f"{error.node} {error.words}".strip(),
                "seconds": round(processor_seconds() - begun, 2),
            }
        seconds = round(processor_seconds() - begun, 2)
        engines = sum(path.stat().st_size for path in place.rglob("*.engine"))
    return {
        **row,
        "outcome": "compiled",
        "seconds": seconds,
        "files": sum(file.size for file in files),
        "engines": engines,
    }


def processor_seconds() -> float:
    """The processor time of compilers that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def table(rows: Iterable[Row]) -> Iterator[str]:
    """One line per precision: what became of its files, the compiler's processor seconds, and bytes of engines beside those of exports."""
    every = [*rows]
    yield "| precision | compiled | refused | failed | seconds, median | most | engine / export, median |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for precision in PRECISIONS:
        chosen = [row for row in every if row["precision"] == precision]
        compiled = [row for row in chosen if row["outcome"] == "compiled"]
        if compiled:
            counts = [
                sum(row["outcome"] == name for row in chosen) for name in ("compiled", "refused", "failed")
            ]
            seconds = [row["seconds"] for row in compiled]
            sizes = statistics.median(row["engines"] / row["files"] for row in compiled)
            cells = [*counts, f"{statistics.median(seconds):.1f}", f"{max(seconds):.1f}", f"{sizes:.2f}"]
            yield f"| {precision} | {' | '.join(map(str, cells))} |"
