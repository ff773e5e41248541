"""The default screen of ``zoo params``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cli.tables.shares import OTHERS, apportioned, bar
from cli.terminal.screen import Screen, row_width
from zoo.core.units import byte_text, parameter_text

if TYPE_CHECKING:
    from zoo.reports.parameters import ModuleParameters, ParameterReport

_MOST_ROWS = 9
_PRECISIONS = ("fp32", "fp16", "int8", "int4")
_BLOCKS = "ModuleList"
_LEAST = 1000
"""A part of a stack with less than a thousandth of all parameters is counted with others."""


@dataclass(frozen=True)
class _Part:
    """A module, or a part of the blocks of one, with its parameters, and the parts that add up to it."""

    name: str
    parameters: int
    note: str = ""
    parts: tuple[_Part, ...] = ()


def print_counts(
    screen: Screen,
    report: ParameterReport,
    selected: Sequence[ModuleParameters],
    sizes: Mapping[str, int],
    target: str,
) -> None:
    """Print the modules with their shares, which add up, the total, and the sizes of files."""
    modules = selected or [module for module in report.root.children if module.has_weights]
    tops = [_part(module, module.path) for module in modules]
    if len(tops) > _MOST_ROWS:
        tops = [
            *tops[: _MOST_ROWS - 1],
            _Part(OTHERS, sum(part.parameters for part in tops[_MOST_ROWS - 1 :])),
        ]
    screen.row("params", *_lines(tops, report.total_parameters))
    if selected:
        count = sum(part.parameters for part in tops)
        screen.row("selected", f"{count:,} of {report.total_parameters:,}")
    elif report.active_parameters != report.total_parameters:
        active = parameter_text(report.active_parameters)
        screen.row("active", f"{active} of {parameter_text(report.total_parameters)} for each token")
    names = [name for name in _PRECISIONS if name in sizes]
    if names and not selected and report.met:
        text = ", ".join(f"{name} {byte_text(sizes[name])}" for name in names)
        screen.row("files", text if target == "portable" else f"{text} (for {target})")


def _part(module: ModuleParameters, name: str) -> _Part:
    """A module; of a stack, with what its blocks consist of."""
    blocks = [block for child in module.children if child.kind == _BLOCKS for block in child.children]
    if not blocks:
        owner = next((owner for inner in module.walk() for owner in inner.shared.values()), "")
        return _Part(
            name, module.parameters, f"= {owner.partition('.')[0]}" if owner and not module.parameters else ""
        )
    counts = Counter[str]()
    for block in blocks:
        for child in block.children:
            counts["norms" if child.name.endswith("norm") else child.name] += child.parameters
    counts[OTHERS] += module.parameters - counts.total()
    inner = [_Part(part, count) for part, count in counts.items() if count]
    alike = {block.likeness for block in blocks}
    block_size = f" of {parameter_text(blocks[0].parameters)}" if len(alike) == 1 else ""
    return _Part(name, module.parameters, f"{len(blocks)} blocks{block_size}", tuple(inner))


def _lines(tops: Sequence[_Part], total: int) -> Iterator[str]:
    rows = list(_rows(_fitting(tops, total), total))
    names = max(len(name) for name, *_ in rows)
    counts = max(len(f"{part.parameters:,}") for _, part, _ in rows)
    notes = max(len(part.note) for _, part, _ in rows)
    width = max(1, row_width() - names - counts - notes - len("  100.0%") - 3 * 2)
    for name, part, tenths in rows:
        drawn = bar(part.parameters / total, width) if total else ""
        text = (
            f"{name:{names}}  {part.parameters:{counts},}  {tenths / 10:5.1f}%  {drawn:{width}}  {part.note}"
        )
        yield text.rstrip()


def _fitting(tops: Sequence[_Part], total: int) -> list[_Part]:
    """The modules with as many parts of stacks as there is room for, the largest stacks first."""
    room = _MOST_ROWS - len(tops)
    shown = {part.name: part for part in tops}
    for part in sorted(tops, key=lambda part: -part.parameters):
        small = [inner for inner in part.parts if inner.parameters * _LEAST < total]
        kept = [inner for inner in part.parts if inner not in small]
        if small:
            kept.append(
                _Part(small[0].name if len(small) == 1 else OTHERS, sum(inner.parameters for inner in small))
            )
        fits = 1 < len(kept) <= room
        shown[part.name] = _Part(part.name, part.parameters, part.note, tuple(kept) if fits else ())
        room -= len(kept) if fits else 0
    return list(shown.values())


def _rows(tops: Sequence[_Part], total: int) -> Iterator[tuple[str, _Part, int]]:
    """The indented name of each part, the part, and its tenths of a percent, which add up on every level."""
    whole = 1000 * sum(part.parameters for part in tops) // total if total else 0
    for top, share in zip(tops, apportioned([part.parameters for part in tops], whole), strict=True):
        yield top.name, top, share
        inner = apportioned([part.parameters for part in top.parts], share)
        for part, tenths in zip(top.parts, inner, strict=True):
            yield f"  {part.name}", part, tenths
