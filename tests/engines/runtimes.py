"""The table of minimum versions of ONNX Runtime, from what was run: ``python -m tests.engines runtimes``.

Files are chosen until every feature of every kind has a file, and are run on every version that is installed. Interrupted, it goes on
where it was.
"""

from __future__ import annotations

import datetime
import itertools
import json
import platform
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx

from exporters.target.runtimes import TABLE, features, table, version_key
from exporters.verification.engines.engine import Engine
from exporters.verification.engines.find import engines_here
from exporters.verification.engines.table import RUNTIME_VERSION
from exporters.verification.result import VerificationError
from tests.engines.subject import CALIBRATED, WIDE, Kind, graphs_of, shown_by
from tests.exporters.reduced_presets import structures

PAGE = Path("docs/reference/runtimes.md")

FULL = (
    "bert-base", "gpt2-untied", "llama-3.2-1b", "gemma2-27b", "t5-11b", "distil-whisper-large-v3", "mixtral-8x22b",
    "mamba-1.4b", "lfm2-1.2b",
)  # fmt: skip
"""Structures that are considered in every precision; others in fp32, and with weights in 4 bits."""

TARGETS = ("portable", "cpu", "cuda", "tensorrt")
PRECISIONS = ("fp32", "fp16", "bf16", "int8", "int4", "q4f16")


def kinds() -> Iterator[Kind]:
    """The kinds that are considered, the plainest first."""
    every = structures()
    first = [name for name in FULL if name in every]
    for target in TARGETS:
        for precision in PRECISIONS:
            yield from (Kind(name, target, precision) for name in first)
    yield from (Kind("bert-base", target, "int8", (CALIBRATED,)) for target in ("portable", "cpu"))
    for precision in ("fp16", "bf16", "int8", "int4"):
        yield from (Kind(name, "tensorrt", precision, (WIDE,)) for name in first)
    yield from (Kind(name, "portable", "fp32", (("opset", 27),)) for name in every)
    for name in first:
        for bits in ("int8", "int4"):
            for precision in ("fp32", "fp16"):
                caches = (("cache_precision", bits),)
                yield from (Kind(name, each, precision, caches) for each in ("cpu", "cuda"))
        for precision in ("fp32", "fp16"):
            yield Kind(name, "cpu", precision, (("window_cache", True),))
        yield Kind(name, "cpu", "int4", (("head_precision", "int4"),))
        yield Kind(name, "cpu", "int4", (("asymmetric", True),))
    for target in TARGETS:
        for precision in ("fp32", "int4"):
            yield from (Kind(name, target, precision) for name in every if name not in first)


def chosen(every: Iterable[Kind]) -> Iterator[tuple[Kind, list[str]]]:
    """The kinds with a feature that no kind before them has twice, and the features of each."""
    counts: dict[str, int] = {}
    for kind in every:
        found = sorted(set[str]().union(*map(features, graphs_of(kind))))
        if any(counts.get(feature, 0) < 2 for feature in found):
            for feature in found:
                counts[feature] = counts.get(feature, 0) + 1
            yield kind, found


def run(place: Path) -> None:
    """Run the chosen kinds, with results beside ``place``, which goes on where it was interrupted; write the table."""
    engines = [
        replace(each, exact_forms=False) for each in engines_here() if RUNTIME_VERSION.fullmatch(each.name)
    ]
    done = {}
    if place.is_file():
        done = {each["kind"]: each for each in map(json.loads, place.read_text("utf-8").splitlines())}
    with place.open("a", encoding="utf-8") as file:
        for kind, found in chosen(kinds()):
            if str(kind) in done:
                continue
            failed = failures(kind, engines)
            result = {"kind": str(kind), "features": found, "failures": failed}
            done[str(kind)] = result
            file.write(json.dumps(result) + "\n")
            file.flush()
            print(kind, {v: words[:80] for v, words in failed.items()}, flush=True)
    before = table()["files"] if TABLE.is_file() else {}
    write_table([*done.values()], [each.name.removeprefix("onnxruntime-") for each in engines])
    table.cache_clear()
    write_page()
    if newer := [*worse(before, json.loads(TABLE.read_text("utf-8"))["files"])]:
        raise SystemExit("\n".join(["Exports state runtimes that do not run them:", *newer]))


def worse(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """The kinds of files that need a newer version than the table said before."""
    for kind in before.keys() & now.keys():
        stated, found = before[kind]["minimum"], now[kind]["minimum"]
        if stated and (found is None or version_key(found) > version_key(stated)):
            yield f"{kind}: {stated} was stated, {found} is the first that computes it"


def failures(kind: Kind, engines: list[Engine]) -> dict[str, str]:
    """The versions that do not compute the files of a kind, with their words; ``here`` for the installed one."""
    try:
        found = shown_by(kind, engines)
    except VerificationError as error:
        return {"here": str(error).splitlines()[0]}
    return {
        name.removeprefix("onnxruntime-"): _first_line(result.words)
        for name, result in found.items()
        if not result.passed
    }


def _first_line(words: str) -> str:
    return re.sub(r"Load model from \S+ failed:|/\S+/(?=\w+\.(cc|h):)", "", words.strip().splitlines()[0])[
        :300
    ]


def write_table(results: list[dict[str, Any]], versions: list[str]) -> None:
    """Write the table that exports read."""
    files = [each for each in results if "here" not in each["failures"]]
    for each in files:
        each["minimum"] = minimum_of(each["failures"], versions)
    minimum = dict[str, str]()
    for each in files:
        if each["minimum"] is None:
            continue
        for feature in each["features"]:
            minimum[feature] = min(minimum.get(feature, versions[-1]), each["minimum"], key=version_key)
    combinations = combined(files, minimum)
    written = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {_vnni()}", "onnx": onnx.__version__, "versions": versions,
        "features": dict(sorted(minimum.items())), "combinations": combinations,
        "files": {
            each["kind"]: {"minimum": each["minimum"], "failures": each["failures"]}
            for each in sorted(files, key=lambda each: str(each["kind"]))
        },
    }  # fmt: skip
    TABLE.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", "utf-8")
    for each in files:
        if each["minimum"] is None:
            print(f"fails in the newest version: {each['kind']}: {each['failures']}", file=sys.stderr)


def write_page() -> None:
    """Write the page of the documentation from the table."""
    found = table()
    versions = found["versions"]
    lines = [
        "# Versions of ONNX Runtime",
        "",
        f"The first version of ONNX Runtime's CPU provider that computes files of each kind, as run on {found['date']} "
        f"({found['machine']}). `python -m tests.engines runtimes` writes this page and the table that exports read.",
        "",
        f"{len(found['files'])} files, reduced models of presets, ran on {len(versions)} versions: {', '.join(versions)}. The first version is "
        "the one from which on every later one computes the file: fp32 as PyTorch does, other precisions as the newest version does, within "
        "rounding. bf16 runs with float32 in its place, as the CPU provider has no bfloat16.",
        "",
        "| target | precision | model | first version | the version before it |",
        "| --- | --- | --- | --- | --- |",
    ]
    for kind, each in found["files"].items():
        preset, target, precision, *options = kind.split(" ")
        minimum = each["minimum"]
        place = versions.index(minimum) if minimum else len(versions)
        before = _why(each["failures"].get(versions[place - 1], "")) if place else "not run"
        name = f"{preset} ({', '.join(options)})" if options else preset
        lines.append(f"| {target} | {precision} | {name} | {minimum or 'none'} | {before} |")
    PAGE.write_text("\n".join(lines) + "\n", "utf-8")


def _why(words: str) -> str:
    """What a version does with a file that it does not compute: values that are off, or a refusal."""
    if "off by" in words:
        return f"other values: {words.partition(', ')[0]}, {words.partition('off by ')[2].partition(',')[0].split()[0]} off"
    short = re.sub(
        r"^\[ONNXRuntimeError\] : \d+ : (\w+) :.*?(This is an invalid model|Fatal error|$)", r"\1: \2", words
    )
    return "refused: " + short.replace("|", "\\|")[:110].strip(" :")


def combined(files: list[dict[str, Any]], minimum: dict[str, str]) -> list[tuple[list[str], str]]:
    """The pairs of features, or else the triples, of files that need a newer version than each of their features: those that no
    file has which an older version computes."""
    found: dict[tuple[str, ...], str] = {}
    for each in files:
        needed = each["minimum"]
        stated = (
            max((minimum[feature] for feature in each["features"]), key=version_key) if needed else needed
        )
        if stated == needed:
            continue
        older = [
            set(other["features"])
            for other in files
            if other["minimum"] and version_key(other["minimum"]) < version_key(needed)
        ]
        for size in (2, 3):
            sets = [
                names
                for names in itertools.combinations(sorted(each["features"]), size)
                if not any(others.issuperset(names) for others in older)
            ]
            if sets:
                break
        else:  # files with the same features need less: nothing tells them apart
            sets = [tuple(sorted(each["features"]))]
        for names in sets:
            found[names] = max(found.get(names, needed), needed, key=version_key)
    return sorted(([*names], version) for names, version in found.items())


def minimum_of(failed: Iterable[str], versions: list[str]) -> str | None:
    """The first version from which on none fails; None where the last one does."""
    good = None
    for version in reversed(versions):
        if version in failed:
            break
        good = version
    return good


def _vnni() -> str:
    try:
        flags = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return "processor unknown"
    return "with VNNI" if "vnni" in flags else "without VNNI"
