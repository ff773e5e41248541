"""The table of what the compiler of TensorRT for RTX takes: ``python -m tests.engines.tensorrt_table FILE [PRESET..]``.

Every structure of the presets in every precision, with heads as wide as they are, as fused attention depends on them. FILE keeps the
results, a line each, so that an interrupted run goes on where it was.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from exporters.export import export
from exporters.graph.precisions import PRECISIONS
from exporters.steps.options import ExportOptions
from exporters.target.targets import TARGETS
from exporters.verification.engines.replay import replay
from exporters.verification.engines.table import ENGINES
from tests.engines.reductions import wide_heads
from tests.exporters.reduced_presets import structures


def cell(name: str, precision: str) -> dict[str, Any]:
    """What the compiler says of one structure in one precision."""
    spec, begun = wide_heads(name), time.monotonic()
    length = 64 if spec.decodes else None
    options = ExportOptions.of(target="tensorrt", precision=precision, cache_length=length, verify=False)
    with TemporaryDirectory() as place:
        _, found = replay(export(spec, Path(place) / "x", options).directory, ENGINES["tensorrt-rtx"])
    seconds = round(time.monotonic() - begun, 1)
    return {
        "preset": name,
        "precision": precision,
        "outcome": found.outcome,
        "words": found.words,
        "seconds": seconds,
    }


def main(place: Path, names: list[str]) -> None:
    """Fill the cells that have no result yet, and print the counts."""
    rows = [json.loads(line) for line in place.read_text("utf-8").splitlines()] if place.exists() else []
    done = {(row["preset"], row["precision"]) for row in rows}
    for name in names or structures():
        for precision in PRECISIONS:
            if precision not in TARGETS["tensorrt"].unsupported_precisions and (name, precision) not in done:
                rows.append(cell(name, precision))
                with place.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
                print(name, precision, rows[-1]["outcome"], rows[-1]["words"][:200], flush=True)
    print(Counter((row["precision"], row["outcome"]) for row in rows))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
