"""Portable means portable: every structure on every engine in every precision: ``python -m tests.engines matrix``.

Interrupted, it goes on where it was: structures in fp32 come first. The page is written from the results that there are.
"""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from exporters.engines.engine import Engine
from exporters.engines.find import engines_here, interpreter_of
from exporters.engines.table import RUNTIME_VERSION
from exporters.runtimes import version_key
from exporters.verification import VerificationError
from tests.engines.subject import Kind, shown_by
from tests.exporters.reduced_presets import structures

PRECISIONS = ("fp32", "int4", "int8", "fp16")
PAGE = Path("docs/reference/engines.md")
OUTCOMES = Path("docs/reference/engines.json")

SLOW = ("webgpu",)
"""Engines that take a minute a file without a GPU: they run a structure in fp32 alone."""


def engines_of(precision: str) -> Iterator[Engine]:
    """The engines to run: of ONNX Runtime the oldest version that portable graphs claim, and the newest."""
    versions = [each for each in engines_here() if RUNTIME_VERSION.fullmatch(each.name)]
    kept = {each.name for each in versions if each.packages[0].endswith(("==1.20.1", "==1.24.4"))}
    kept |= {max(versions, key=lambda each: version_key(each.packages[0].partition("==")[2])).name}
    for engine in engines_here():
        wanted = engine.name in kept or (engine.name not in {each.name for each in versions})
        if not wanted or engine.name in ("onnxruntime", "cuda") or engine.shows != "computes":
            continue
        if engine.name in SLOW and precision != "fp32":
            continue
        if engine.speaks_for("portable") and interpreter_of(engine) is not None:
            yield replace(engine, exact_forms=False)


def run(place: Path) -> None:
    """Run what has no result yet in ``place``, and write the page."""
    done: dict[tuple[str, str], dict[str, Any]] = {}
    if place.is_file():
        for line in place.read_text("utf-8").splitlines():
            each = json.loads(line)
            done.setdefault((each["preset"], each["precision"]), {}).update(each["engines"])
    with place.open("a", encoding="utf-8") as file:
        for precision in PRECISIONS:
            engines = [*engines_of(precision)]
            for preset in structures():
                found = done.setdefault((preset, precision), {})
                missing = [each for each in engines if each.name not in found]
                if not missing:
                    continue
                found |= _cells(Kind(preset, "portable", precision), missing)
                file.write(json.dumps({"preset": preset, "precision": precision, "engines": found}) + "\n")
                file.flush()
                wrong = {
                    name: cell["words"][:70] for name, cell in found.items() if cell["outcome"] == "failed"
                }
                print(preset, precision, wrong, flush=True)
    write_page(done)


def _cells(kind: Kind, engines: list[Engine]) -> dict[str, Any]:
    try:
        return {name: asdict(result) for name, result in shown_by(kind, engines).items()}
    except VerificationError as error:
        words = str(error).splitlines()[0]
        return {each.name: {"version": "", "outcome": "not tried", "words": words} for each in engines}
    except Exception as error:  # one structure must not end the run
        words = f"{type(error).__name__}: {error}"
        return {each.name: {"version": "", "outcome": "not tried", "words": words} for each in engines}


def write_page(done: dict[tuple[str, str], dict[str, Any]]) -> None:
    """Write the page and its data."""
    columns = list(dict.fromkeys(name for cells in done.values() for name in cells))
    versions = {
        name: next(
            (cells[name]["version"] for cells in done.values() if cells.get(name, {}).get("version")), ""
        )
        for name in columns
    }
    lines = [
        "# Engines",
        "",
        f"What each engine computes of every structure of the presets, exported for `portable`, on "
        f"{datetime.datetime.now(datetime.UTC).date().isoformat()}. `python -m tests.engines matrix` writes this page.",
        "",
        "Each cell is the number of structures whose outputs are those of PyTorch (fp32), or those of ONNX Runtime within rounding "
        "(others), of those that were run: batches, lengths, padding on either side, prefill and steps.",
        "",
        f"| precision | {' | '.join(_title(name, versions[name]) for name in columns)} |",
        f"| --- | {' | '.join('---' for _ in columns)} |",
    ]
    for precision in sorted({precision for _, precision in done}, key=PRECISIONS.index):
        cells = [cells for (_, each), cells in done.items() if each == precision]
        lines.append(f"| {precision} | {' | '.join(_share(cells, name) for name in columns)} |")
    lines += ["", "## What is not computed", ""]
    for name in columns:
        reasons = Counter[str]()
        examples: dict[str, list[str]] = {}
        for (preset, precision), cells in done.items():
            cell = cells.get(name, {})
            if cell.get("outcome") == "failed":
                reason = _reason(cell["words"])
                reasons[reason] += 1
                examples.setdefault(reason, []).append(f"{preset} {precision}")
        if not reasons:
            continue
        lines += [
            f"### {_title(name, versions[name])}",
            "",
            "| files | engine's words | for example |",
            "| --- | --- | --- |",
        ]
        for reason, count in reasons.most_common():
            lines.append(f"| {count} | {reason} | {', '.join(examples[reason][:3])} |")
        lines.append("")
    PAGE.write_text("\n".join(lines).rstrip() + "\n", "utf-8")


def _title(name: str, version: str) -> str:
    return name if name.endswith(version) else f"{name} {version}"


def _share(cells: list[dict[str, Any]], name: str) -> str:
    outcomes = [cell[name]["outcome"] for cell in cells if name in cell]
    tried = [each for each in outcomes if each != "not tried"]
    return f"{tried.count('computed')} of {len(tried)}" if tried else "not tried"


def _reason(words: str) -> str:
    """The telling line of an engine's words, without what differs from file to file."""
    import re

    lines = [line.strip() for line in words.splitlines() if line.strip()]
    telling = next(
        (line for line in lines if re.search(r"not supported|Unsupported|cannot|must|failed|off by", line)),
        lines[0],
    )
    if found := re.search(r"off by .* from|off by", telling):
        return "other values: " + re.sub(r"[\d.]+e[-+]\d+", "x", found.group())
    short = re.sub(r"'[^']*'|\"[^\"]*\"|/\S+|\b\d+\b", "..", telling)[:160]
    return short.replace("|", "\\|")
