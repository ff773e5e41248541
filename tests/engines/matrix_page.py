"""The page and the picture of the portability matrix."""

from __future__ import annotations

import datetime
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.engines.subject import WHOLE, Kind
from tests.exporters.reduced_presets import structures

PRECISIONS = ("fp32", "int4", "int8", "fp16")
PAGE = Path("docs/reference/engines.md")
PICTURE = Path("docs/reference/engines.svg")

Results = dict[tuple[str, str], dict[str, Any]]
"""The cells of each preset and precision, by engine."""

_CELL, _LEFT, _TOP = 11, 190, 120
_COLOURS = {"computed": "#2a9d5c", "failed": "#d1495b", "not tried": "#c8c8c8"}

KNOWN = {
    r"at most 64 array objects|cannot reshape array of size 1 into shape": "The reference evaluator computes GatherElements with "
    "numpy.choose, which takes 64 arrays at most "
    "(`test_the_reference_evaluator_gathers_from_64_elements_at_most`).",
    r"zero scan-input length": "The reference evaluator refuses a Scan over no tokens, which ONNX allows.",
}
"""What is an engine's own fault, by its words; the smallest graphs are the tests of ``tests/engines/test_faults.py``."""

TRUNCATED = (
    "OpenVINO truncates to bfloat16 where a size is symbolic, instead of rounding to nearest "
    "(`test_openvino_truncates_to_bfloat16_where_a_size_is_symbolic`)."
)

ROUTED = (
    "In float16, a router's two best experts are so close that rounding chooses between them: one case of several differs, and the "
    "same graph without rounding is computed exactly."
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

VALUES = {
    ("openvino", "falcon-rw-1b"): TRUNCATED,
    ("onnxruntime-1.20.1", "deepseek-v3"): ROUTED,
    ("wasm", "deepseek-v3"): ROUTED,
    ("webgpu", "wavlm-base-plus"): GROUPS,
}
"""Why an engine computes other values of a structure."""


def write_page(done: Results) -> None:
    """Write the page and its picture."""
    versions: dict[str, str] = {}
    for cells in done.values():
        for name, cell in cells.items():
            versions[name] = versions.get(name) or cell["version"]
    columns = sorted(versions)
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
        f"{_tried(done, columns):,} of {len(structures()) * len(PRECISIONS) * len(columns):,} cells were run: {len(structures())} structures, "
        f"{len(PRECISIONS)} precisions and {len(columns)} engines. The others are grey in the picture.",
        "",
        f"| precision | {' | '.join(_title(name, versions[name]) for name in columns)} |",
        f"| --- | {' | '.join('---' for _ in columns)} |",
    ]
    for precision in PRECISIONS:
        cells_of = [cells for (_, each), cells in done.items() if each == precision]
        if cells_of:
            lines.append(f"| {precision} | {' | '.join(_share(cells_of, name) for name in columns)} |")
    lines += ["", "![One row per structure, one column per engine and precision](engines.svg)", ""]
    lines += ["## Failures", ""]
    lines += [
        "The tests named here are the smallest graphs that show the fault, in `tests/engines/test_faults.py`.",
        "",
    ]
    for name in columns:
        lines += _reasons(done, name, _title(name, versions[name]))
    lines += ["## Avoided in graphs", "", *(f"- {each}" for each in AVOIDED)]
    PAGE.write_text("\n".join(lines).rstrip() + "\n", "utf-8")
    PICTURE.write_text(_picture(done, columns), "utf-8")


def _tried(done: Results, columns: list[str]) -> int:
    cells = [cell[name] for cell in done.values() for name in columns if name in cell]
    return sum(each["outcome"] != "not tried" for each in cells)


def _title(name: str, version: str) -> str:
    return name if version and name.endswith(version) else f"{name} {version}".rstrip()


def _share(cells: list[dict[str, Any]], name: str) -> str:
    tried = [cell[name]["outcome"] for cell in cells if name in cell and cell[name]["outcome"] != "not tried"]
    return f"{tried.count('computed')} of {len(tried)}" if tried else "not tried"


def _reasons(done: Results, name: str, title: str) -> Iterator[str]:
    examples = defaultdict[str, list[str]](list)
    for (preset, precision), cells in done.items():
        if cells.get(name, {}).get("outcome") == "failed":
            reason = _reason(name, Kind(preset, "portable", precision, (WHOLE,)), cells[name]["words"])
            examples[reason].append(f"{preset} {precision}")
    if not examples:
        return
    yield from (f"### {title}", "", "| files | why | for example |", "| --- | --- | --- |")
    for reason, files in sorted(examples.items(), key=lambda each: -len(each[1])):
        yield f"| {len(files)} | {reason} | {', '.join(files[:3])} |"
    yield ""


def _reason(name: str, kind: Kind, words: str) -> str:
    """Why an engine computes no file: what is known, or the telling line of its words without what differs from file to file."""
    if "off by" in words and (name, kind.preset) in VALUES:
        return VALUES[name, kind.preset]
    for pattern, reason in KNOWN.items():
        if re.search(pattern, words, re.DOTALL):
            return reason
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"not supported|[Uu]nsupported|cannot|must|invalid", line)]
    if found := re.search(r"^(.*): off by", words):
        return f"other values: {found[1].partition(', ')[0]}"
    short = re.sub(r"/\S+/|0x\w+|\b\d+\b", "", (telling or lines)[0])[:160]
    return short.replace("|", "\\|").replace("<", "&lt;")


def _picture(done: Mapping[tuple[str, str], dict[str, Any]], columns: list[str]) -> str:
    """One row per structure and one square per engine and precision."""
    precisions = [each for each in PRECISIONS if any(precision == each for _, precision in done)]
    pairs = [(name, precision) for name in columns for precision in precisions]
    presets = list(dict.fromkeys(preset for preset, _ in done))
    width, height = _LEFT + _CELL * len(pairs) + 10, _TOP + _CELL * len(presets) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="8">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for place, (name, precision) in enumerate(pairs):
        x = _LEFT + _CELL * place + 8
        parts.append(f'<text transform="translate({x} {_TOP - 4}) rotate(-90)">{name} {precision}</text>')
    for row, preset in enumerate(presets):
        y = _TOP + _CELL * row
        parts.append(f'<text x="{_LEFT - 4}" y="{y + 8}" text-anchor="end">{preset}</text>')
        for place, (name, precision) in enumerate(pairs):
            outcome = done.get((preset, precision), {}).get(name, {}).get("outcome", "not tried")
            box = f'x="{_LEFT + _CELL * place}" y="{y}" width="{_CELL - 1}" height="{_CELL - 1}"'
            parts.append(
                f'<rect {box} fill="{_COLOURS[outcome]}"><title>{preset} {precision} {name}: {outcome}</title></rect>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"
