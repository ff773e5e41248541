"""The page and the picture of the portability matrix."""

from __future__ import annotations

import datetime
import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from exporters.target.runtimes import version_key
from exporters.verification.engines.table import RUNTIME_VERSION
from tests.engines.subject import WHOLE, Kind, graphs_of
from tests.exporters.reduced_presets import structures

PRECISIONS = ("fp32", "int4", "int8", "fp16")
PAGE = Path("docs/reference/engines.md")
PICTURE = Path("docs/reference/engines.svg")

RUNTIME = "onnxruntime"
"""The column of the versions of ONNX Runtime."""

Results = dict[tuple[str, str], dict[str, Any]]
"""The cells of each preset and precision, by engine."""

_CELL, _LEFT, _TOP = 11, 190, 120
_COLOURS = {"computed": "#2a9d5c", "failed": "#d1495b", "not tried": "#c8c8c8"}

KNOWN = {
    r"at most 64 array objects|cannot reshape array of size 1 into shape": "The reference evaluator computes GatherElements with "
    "numpy.choose, which takes 64 arrays at most; [#8444](https://github.com/onnx/onnx/pull/8444) mends it after 1.23.2 "
    "(`test_the_reference_evaluator_gathers_from_64_elements_at_most`).",
    r"zero scan-input length": "The reference evaluator refuses a Scan over no tokens, which ONNX allows.",
    r"running Scan node.*running Gather node.*webgpu_context": "In the body of a Scan, WebGPU runs a Gather of 4-bit codes whose bytes are in "
    "the memory of the CPU, and refuses its own input. `--target webgpu` computes such mixtures by QMoE, without a Scan.",
}
"""What is an engine's own fault, by its words; the smallest graphs are the tests of ``tests/engines/test_faults.py``."""

ROUNDED = (
    "OpenVINO rounds to bfloat16 wrongly where a size is symbolic: a value whose bfloat16 below it is even is truncated "
    "(`test_openvino_rounds_to_bfloat16_wrongly_where_a_size_is_symbolic`). With its rounding, ONNX Runtime computes the same as OpenVINO."
)

SUMMED = (
    "ONNX Runtime 1.29 sums float16 products of Gemm in float16, where other versions sum in float32: rounding errors are 3 to 10 times "
    "as large, and products take 80 to 280 times as long ([#32255](https://github.com/microsoft/onnxruntime/issues/32255), "
    "`test_onnxruntime_1_29_sums_in_float16`). Use another version for fp16."
)

ROUTED = (
    "In float16, two experts' scores are so close for a token that rounding chooses between them "
    "(`test_rounding_chooses_between_experts_whose_scores_are_close`). The same structure in fp32 is computed."
)

GROUPS = (
    "WebGPU computes wrong values of a convolution in groups if a group has more than 4 outputs, in no whole vectors of 4 "
    "(`test_webgpu_mixes_groups_of_a_convolution_whose_outputs_are_no_vectors_of_4`); this reduced model has groups of 6, the model itself of "
    "48. `--target webgpu` computes whole vectors, and leaves the rest out."
)

AVOIDED = (
    "OpenVINO takes no last block of quantized weights that is shorter than the others, which ONNX allows, and misreads blocks whose "
    "size is no power of two. Matrices whose width no block of 16 or more divides, such as those of Qwen2.5-VL's images, have one "
    "scale per row and 8 bits (`test_openvino_takes_no_last_block_that_is_shorter`, "
    "`test_openvino_misreads_blocks_whose_size_is_no_power_of_two`).",
    "OpenVINO takes no Scan that reads a value computed outside of it: such values are carried through the Scan "
    "(`test_openvino_takes_no_scan_that_reads_a_value_computed_outside`).",
    "OpenVINO computes attention without a mask wrongly once it has computed that of one token alone, such as the single frame of a "
    "short recording. Its softmax has another rank, which OpenVINO fuses with no product "
    "(`test_openvino_computes_attention_wrongly_after_one_token_alone`).",
    "ONNX Runtime moves transpositions wrongly through padding of chosen axes: graphs pad all axes "
    "(`test_onnxruntime_moves_transpositions_wrongly_through_padding_of_chosen_axes`).",
    "ONNX Runtime 1.28 and later fuses no DequantizeLinear with its product if something else reads the weight, such as the table of a "
    "tied head ([#28326](https://github.com/microsoft/onnxruntime/pull/28326)): each reader has its own names for the same bytes.",
    "Sines of WebGPU may be off by 2^-11, by its standard. Those of SwiftShader are off by 2e-4, and by 0.08 for angles of a million, so that "
    "rotated keys are off by 1e-4; those of lavapipe, which this page is of, by 7e-8 "
    "(`test_swiftshader_computes_sines_that_are_coarse`). `--target webgpu` computes sines from sums and products.",
)
"""What graphs avoid; the smallest graphs are in the same file."""

VALUES = {("openvino", "falcon-rw-1b"): ROUNDED, ("webgpu", "wavlm-base-plus"): GROUPS}
"""Why an engine computes other values of a structure."""


def write_page(done: Results) -> None:
    """Write the page and its picture."""
    versions: dict[str, str] = {}
    for cells in done.values():
        for name, cell in cells.items():
            versions[name] = versions.get(name) or cell["version"]
    columns = columns_of(versions)
    lines = [
        "# Portability",
        "",
        "The results of each engine on every structure of the presets, as reduced models exported for `portable`. Run on "
        f"{datetime.datetime.now(datetime.UTC).date().isoformat()}; `python -m tests.engines matrix` writes this page.",
        "",
        "A cell counts the structures that an engine computes, of those that it was given: batches, lengths, padding on either side, "
        "prompts and steps. Outputs in fp32 are those of PyTorch to 2e-5; those of other precisions are ONNX Runtime's, within rounding. "
        "Weights are drawn so that every part of a graph shows, and widths are whole blocks where those of the preset are.",
        "",
        f"{_tried(done):,} of {len(structures()) * len(PRECISIONS) * len(versions):,} cells were run: {len(structures())} structures, "
        f"{len(PRECISIONS)} precisions and {len(versions)} engines. In the picture, cells that were not run are grey. Versions of ONNX "
        "Runtime share a column, which is green where all that were run compute the structure.",
        "",
        f"| precision | {' | '.join(_title(column, names, versions) for column, names in columns.items())} |",
        f"| --- | {' | '.join('---' for _ in columns)} |",
    ]
    for precision in PRECISIONS:
        cells_of = [cells for (_, each), cells in done.items() if each == precision]
        if cells_of:
            lines.append(
                f"| {precision} | {' | '.join(share(cells_of, names) for names in columns.values())} |"
            )
    lines += ["", "![One row per structure, one column per engine and precision](engines.svg)", ""]
    lines += ["## Failures", ""]
    lines += [
        "The tests named here are the smallest graphs that show the fault, in `tests/engines/test_faults.py`.",
        "",
    ]
    for column, names in columns.items():
        lines += _reasons(done, names, _title(column, names, versions))
    lines += ["## Avoided in graphs", "", *(f"- {each}" for each in AVOIDED)]
    PAGE.write_text("\n".join(lines).rstrip() + "\n", "utf-8")
    PICTURE.write_text(_picture(done, columns), "utf-8")


def columns_of(engines: Iterable[str]) -> dict[str, list[str]]:
    """The columns of the table and the engines of each: the versions of ONNX Runtime share one, the oldest first."""
    columns: dict[str, list[str]] = {}
    for name in sorted(engines, key=lambda name: version_key(version_of(name)) if version_of(name) else []):
        columns.setdefault(RUNTIME if version_of(name) else name, []).append(name)
    return dict(sorted(columns.items()))


def version_of(name: str) -> str:
    """The version of ONNX Runtime that an engine's name states, or empty."""
    match = RUNTIME_VERSION.fullmatch(name)
    return match[1] if match else ""


def _tried(done: Results) -> int:
    return sum(cell["outcome"] != "not tried" for cells in done.values() for cell in cells.values())


def _title(column: str, names: list[str], versions: Mapping[str, str]) -> str:
    if column != RUNTIME:
        return f"{column} {versions[column]}".rstrip()
    oldest, newest = version_of(names[0]), version_of(names[-1])
    return f"onnxruntime, {len(names)} versions from {oldest} to {newest}" if len(names) > 1 else names[0]


def share(cells: list[dict[str, Any]], names: list[str]) -> str:
    """How many structures the engines of a column compute; versions with other numbers are named."""
    found: dict[str, list[str]] = {}
    for name in names:
        tried = [
            cell[name]["outcome"] for cell in cells if name in cell and cell[name]["outcome"] != "not tried"
        ]
        words = f"{tried.count('computed')} of {len(tried)}" if tried else "not tried"
        found.setdefault(words, []).append(name)
    if len(found) == 1:
        return next(iter(found))
    often = sorted(found.items(), key=lambda each: -len(each[1]))
    return "; ".join(f"{words} ({ranges(names, some)})" for words, some in often)


def ranges(names: list[str], some: list[str]) -> str:
    """Some of the versions in a list as ranges: ``1.20.1 to 1.28.0, 1.30.0``."""
    parts = list[str]()
    for chosen, group in itertools.groupby(names, key=some.__contains__):
        first, *rest = map(version_of, group)
        if chosen:
            parts.append(f"{first} to {rest[-1]}" if rest else first)
    return ", ".join(parts)


def _reasons(done: Results, names: list[str], title: str) -> Iterator[str]:
    files = defaultdict[str, dict[str, list[str]]](lambda: defaultdict(list))
    for (preset, precision), cells in done.items():
        for name in names:
            if cells.get(name, {}).get("outcome") == "failed":
                in_float = done.get((preset, "fp32"), {}).get(name, {}).get("outcome") == "computed"
                kind = Kind(preset, "portable", precision, (WHOLE,))
                reason = reason_of(name, kind, cells[name]["words"], in_float=in_float)
                files[reason][f"{preset} {precision}"].append(name)
    if not files:
        return
    yield from (f"### {title}", "", "| files | why | for example |", "| --- | --- | --- |")
    for reason, failed in sorted(files.items(), key=lambda each: -len(each[1])):
        shown = [
            f"{file} ({ranges(names, some)})" if len(names) > 1 else file for file, some in failed.items()
        ]
        yield f"| {len(failed)} | {reason} | {', '.join(shown[:3])} |"
    yield ""


def reason_of(name: str, kind: Kind, words: str, *, in_float: bool) -> str:
    """Why an engine computes no file: what is known, or the telling line of its words without what differs from file to file.

    ``in_float``: whether the engine computes the same structure in fp32.
    """
    if "off by" in words:
        if (name, kind.preset) in VALUES:
            return VALUES[name, kind.preset]
        if kind.precision == "fp16" and version_of(name).startswith("1.29."):
            return SUMMED
        if kind.precision == "fp16" and in_float and _uses(kind, "TopK"):
            return ROUTED
    for pattern, reason in KNOWN.items():
        if re.search(pattern, words, re.DOTALL):
            return reason
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"not supported|[Uu]nsupported|cannot|must|invalid", line)]
    if found := re.search(r"^(.*): off by", words):
        return f"other values: {found[1].partition(', ')[0]}"
    short = re.sub(r"/\S+/|0x\w+|\b\d+\b", "", (telling or lines)[0])[:160]
    return short.replace("|", "\\|").replace("<", "&lt;")


def _uses(kind: Kind, *operations: str) -> bool:
    return any(node.op_type in operations for model in graphs_of(kind) for node in model.graph.node)


def _picture(done: Results, columns: Mapping[str, list[str]]) -> str:
    """One row per structure and one square per column and precision."""
    precisions = [each for each in PRECISIONS if any(precision == each for _, precision in done)]
    pairs = [(column, precision) for column in columns for precision in precisions]
    presets = list(dict.fromkeys(preset for preset, _ in done))
    width, height = _LEFT + _CELL * len(pairs) + 10, _TOP + _CELL * len(presets) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="8">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for place, (column, precision) in enumerate(pairs):
        x = _LEFT + _CELL * place + 8
        parts.append(f'<text transform="translate({x} {_TOP - 4}) rotate(-90)">{column} {precision}</text>')
    for row, preset in enumerate(presets):
        y = _TOP + _CELL * row
        parts.append(f'<text x="{_LEFT - 4}" y="{y + 8}" text-anchor="end">{preset}</text>')
        for place, (column, precision) in enumerate(pairs):
            outcome, failed = _worst(done.get((preset, precision), {}), columns[column])
            where = f" {ranges(columns[column], failed)}" if failed and column == RUNTIME else ""
            box = f'x="{_LEFT + _CELL * place}" y="{y}" width="{_CELL - 1}" height="{_CELL - 1}"'
            parts.append(
                f'<rect {box} fill="{_COLOURS[outcome]}"><title>{preset} {precision} {column}{where}: {outcome}</title></rect>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _worst(cells: Mapping[str, Any], names: list[str]) -> tuple[str, list[str]]:
    """The outcome to show for the engines of a column, and those that failed."""
    found = {name: cells[name]["outcome"] for name in names if name in cells}
    failed = [name for name, outcome in found.items() if outcome == "failed"]
    return "failed" if failed else "computed" if "computed" in found.values() else "not tried", failed
