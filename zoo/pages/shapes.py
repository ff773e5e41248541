"""The input and output shapes of every module, in symbols; layers of equal shapes are merged."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from specs.model import Model
from specs.stack import Stack
from zoo.builder import assemble
from zoo.checks.shapes import ModuleShapes, check_shapes
from zoo.pages.markup import code, layers_text, section, table
from zoo.reduced import fewer_layers, kept_layers

_BLOCK = re.compile(r"(\w+)\.blocks\.(\d+)(.*)")


def shapes_section(spec: Model) -> str:
    """The table of a reduced model with a few layers of each kind."""
    small = fewer_layers(spec)
    report = check_shapes(assemble(small), small)
    symbols = ", ".join(f"{code(symbol)} {meaning}" for symbol, meaning in report.symbols.items())
    body = table(
        "Shapes of modules", ("module", "kind", "takes", "gives"), _rows(report.modules, dict(spec.stacks()))
    )
    return section("shapes", "Shapes", f"{symbols}; layers of equal shapes are listed once.", body)


def _rows(modules: Sequence[ModuleShapes], stacks: dict[str, Stack]) -> Iterator[list[str]]:
    blocks: dict[tuple[str, int], list[tuple[str, ModuleShapes]]] = {}
    for module in modules:
        if found := _BLOCK.fullmatch(module.path):
            blocks.setdefault((found[1], int(found[2])), []).append((found[3], module))
    told = set()
    for module in modules:
        found = _BLOCK.fullmatch(module.path)
        if found is None:
            yield _row(module, module.path.count(".") + bool(module.path), module.path.rpartition(".")[2])
        elif found[1] not in told:
            told.add(found[1])
            own = {i: block for (stack, i), block in blocks.items() if stack == found[1]}
            yield from _block_rows(own, stacks[found[1]])


def _block_rows(blocks: dict[int, list[tuple[str, ModuleShapes]]], stack: Stack) -> Iterator[list[str]]:
    """The distinct blocks of a reduced stack, with the layers that each stands for."""
    alike: dict[object, list[int]] = {}
    for i, block in blocks.items():
        alike.setdefault(_content(block), []).append(i)
    for layers, first in sorted(
        (_layers(stack, len(blocks), places), places[0]) for places in alike.values()
    ):
        for suffix, module in blocks[first]:
            title = suffix.rpartition(".")[2] or f"blocks, {layers_text(layers, stack.depth)}"
            yield _row(module, 2 + suffix.count("."), title)


def _content(block: Sequence[tuple[str, ModuleShapes]]) -> tuple[object, ...]:
    """A key that is equal for layers with equal rows."""
    return tuple((suffix, m.kind, m.method, m.inputs, m.outputs) for suffix, m in block)


def _layers(stack: Stack, depth: int, kept: Sequence[int]) -> list[int]:
    """The layers of a stack whose kinds are those of some layers of its reduced model, which has ``depth`` layers."""
    names = [run.use for run in stack.runs() for _ in range(run.repeat)]
    originals = kept_layers(stack, depth)
    kinds = {names[originals[i]] for i in kept}
    return [i for i, name in enumerate(names) if name in kinds]


def _row(module: ModuleShapes, level: int, name: str) -> list[str]:
    method = "" if module.method == "forward" else f".{module.method}"
    title = f'<span style="padding-left:{1.1 * max(0, level - 1):.1f}em">{code((name or module.kind) + method)}</span>'
    return [
        title,
        code(module.kind),
        *("<br>".join(map(code, side)) for side in (module.inputs, module.outputs)),
    ]
