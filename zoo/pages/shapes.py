"""The input and output shapes of every module, in symbols; layers of equal shapes are merged."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from specs.model.model import Model
from zoo.builder import ZooModel
from zoo.checks.shapes import ModuleShapes, check_shapes
from zoo.pages.markup import code, layers_text, section, table

_BLOCK = re.compile(r"(\w+)\.blocks\.(\d+)(.*)")


def shapes_section(model: ZooModel, spec: Model) -> str:
    """The table of a model on the meta device."""
    report = check_shapes(model, spec)
    symbols = ", ".join(f"{code(symbol)} {meaning}" for symbol, meaning in report.symbols.items())
    body = table("Shapes of modules", ("module", "kind", "takes", "gives"), _rows(report.modules))
    return section("shapes", "Shapes", f"{symbols}; layers of equal shapes are listed once.", body)


def _rows(modules: Sequence[ModuleShapes]) -> Iterator[list[str]]:
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


def _block_rows(blocks: Mapping[int, Sequence[tuple[str, ModuleShapes]]]) -> Iterator[list[str]]:
    """The distinct blocks of a stack, each with the layers that have it."""
    alike: dict[object, list[int]] = {}
    for layer, block in blocks.items():
        alike.setdefault(_content(block), []).append(layer)
    for layers in alike.values():
        for suffix, module in blocks[layers[0]]:
            title = suffix.rpartition(".")[2] or f"blocks, {layers_text(layers, len(blocks))}"
            yield _row(module, 2 + suffix.count("."), title)


def _content(block: Sequence[tuple[str, ModuleShapes]]) -> tuple[object, ...]:
    """A key that is equal for layers with equal rows."""
    return tuple((suffix, m.kind, m.method, m.inputs, m.outputs) for suffix, m in block)


def _row(module: ModuleShapes, level: int, name: str) -> list[str]:
    method = "" if module.method == "forward" else f".{module.method}"
    title = f'<span style="padding-left:{1.1 * max(0, level - 1):.1f}em">{code((name or module.kind) + method)}</span>'
    return [
        title,
        code(module.kind),
        *("<br>".join(map(code, side)) for side in (module.inputs, module.outputs)),
    ]
