"""The input and output shapes of every module, in symbols; layers of equal shapes are merged."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from zoo.checks.shapes import ModuleShapes, ShapeReport
from zoo.pages.markup import code, layer_runs, layers_text, section, table

_BLOCK = re.compile(r"(\w+)\.blocks\.(\d+)(.*)")


def shapes_section(report: ShapeReport) -> str:
    """The table of the shapes of a model."""
    symbols = ", ".join(f"{code(symbol)} {meaning}" for symbol, meaning in report.symbols.items())
    rows = list(_rows(report.modules))
    header = ("module", "kind", "inputs", "outputs")
    body = table("Shapes of modules", header, [row.cells for row in rows], (), [row.module for row in rows])
    return section("shapes", "Shapes", f"{symbols}; layers of equal shapes are listed once.", body)


@dataclass(frozen=True)
class _Row:
    """The cells of a row, and the path and layers of its module."""

    cells: list[str]
    module: tuple[str, str]


def _rows(modules: Sequence[ModuleShapes]) -> Iterator[_Row]:
    blocks: dict[tuple[str, int], list[tuple[str, ModuleShapes]]] = {}
    for module in modules:
        if match := _BLOCK.fullmatch(module.path):
            blocks.setdefault((match[1], int(match[2])), []).append((match[3], module))
    shown = set()
    for module in modules:
        match = _BLOCK.fullmatch(module.path)
        if match is None:
            yield _row(module, module.path.count(".") + bool(module.path), module.path.rpartition(".")[2])
        elif match[1] not in shown:
            shown.add(match[1])
            own = {i: block for (stack, i), block in blocks.items() if stack == match[1]}
            yield from _block_rows(own)


def _block_rows(blocks: Mapping[int, Sequence[tuple[str, ModuleShapes]]]) -> Iterator[_Row]:
    """The distinct blocks of a stack, each with the layers that have it."""
    alike: dict[object, list[int]] = {}
    for layer, block in blocks.items():
        alike.setdefault(_content(block), []).append(layer)
    for layers in alike.values():
        for suffix, module in blocks[layers[0]]:
            title = suffix.rpartition(".")[2] or f"blocks, {layers_text(layers, len(blocks))}"
            yield _row(module, 2 + suffix.count("."), title, layer_runs(layers))


def _content(block: Sequence[tuple[str, ModuleShapes]]) -> tuple[object, ...]:
    """A key that is equal for layers with equal rows."""
    return tuple((suffix, m.kind, m.method, m.inputs, m.outputs) for suffix, m in block)


def _row(module: ModuleShapes, level: int, name: str, layers: str = "") -> _Row:
    method = "" if module.method == "forward" else f".{module.method}"
    title = f'<span style="padding-left:{1.1 * max(0, level - 1):.1f}em">{code((name or module.kind) + method)}</span>'
    sides = ("<br>".join(map(code, side)) for side in (module.inputs, module.outputs))
    return _Row([title, code(module.kind), *sides], (module.path, layers))
