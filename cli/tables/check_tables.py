"""Tables of ``zoo check``: shapes of all modules, and behaviour."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from cli.terminal.render import Column, print_table, say, styled

if TYPE_CHECKING:
    from zoo.checks import BehaviourReport, ModuleShapes, ShapeReport

_BLOCK = re.compile(r"(.*\bblocks)\.(\d+)(.*)")
_COLORS = {"passed": "green", "failed": "red"}
_SHAPES = [
    Column("module", pinned=True),
    Column("kind", rank=1),
    Column("takes", prose=16),
    Column("gives", prose=16),
]
_CHECKS = [
    Column("check", prose=12, pinned=True),
    Column("result"),
    Column("figure", right=True),
    Column("expected", prose=14),
    Column("method", prose=20),
]


@dataclass(frozen=True)
class _Row:
    """A module in blocks ``first`` to ``last`` of a stack, or outside blocks."""

    prefix: str
    first: int | None
    last: int | None
    suffix: str
    shapes: ModuleShapes

    @property
    def content(self) -> tuple[object, ...]:
        """The key by which two blocks are equal."""
        shapes = self.shapes
        return self.suffix, shapes.kind, shapes.method, shapes.inputs, shapes.outputs

    @property
    def name(self) -> str:
        """The last parts of the path, indented by level."""
        number = "" if self.first is None else f".{self.first}"
        if self.first != self.last:
            number += f"-{self.last}"
        parts = f"{self.prefix}{number}{self.suffix}".split(".")
        is_block = self.first is not None and not self.suffix
        shown = ".".join(parts[-2:] if is_block else parts[-1:])
        if is_block and self.first != self.last:
            assert self.first is not None
            assert self.last is not None
            shown += f" x{self.last - self.first + 1}"
        method = "" if self.shapes.method == "forward" else f".{self.shapes.method}"
        return "  " * (self.level - 1) + (shown or self.shapes.kind) + method

    @property
    def level(self) -> int:
        """The depth of the module in the tree; a list of blocks adds no level."""
        path = self.shapes.path
        return path.count(".") + bool(path) - (self.first is not None)


def print_shapes(report: ShapeReport, *, depth: int, unfold: bool = False) -> None:
    """Print the input and output shapes of every module down to a depth, with runs of equal blocks in one row."""
    rows = [row for row in _rows(report.modules, unfold) if row.level <= depth]
    if rows and depth:
        print_table(
            _SHAPES, [(row.name, row.shapes.kind, row.shapes.inputs, row.shapes.outputs) for row in rows]
        )
        say()
        say(", ".join(f"{symbol} {meaning}" for symbol, meaning in report.symbols.items()))
    for problem in report.problems:
        say(problem, "red")
    if report.passed:
        say(f"shapes: passed, {len({row.path for row in report.modules})} modules", "green")
    else:
        say("shapes: failed", "red")


def _rows(modules: Sequence[ModuleShapes], unfold: bool) -> list[_Row]:
    rows = [_row(shapes) for shapes in modules]
    if unfold:
        return rows
    folded: list[_Row] = []
    for _, stack in groupby(rows, lambda row: row.prefix if row.first is not None else None):
        folded += _folded(list(stack))
    return folded


def _row(shapes: ModuleShapes) -> _Row:
    match = _BLOCK.fullmatch(shapes.path)
    if match is None:
        return _Row(shapes.path, None, None, "", shapes)
    return _Row(match[1], int(match[2]), int(match[2]), match[3], shapes)


def _folded(rows: list[_Row]) -> Iterator[_Row]:
    """The rows with runs of equal blocks merged."""
    blocks = [list(block) for _, block in groupby(rows, lambda row: row.first)]
    for _, run in groupby(blocks, lambda block: [row.content for row in block]):
        first, *_, last = [*run] * 2
        yield from (replace(row, last=last[0].first) for row in first)


def print_behaviour(report: BehaviourReport) -> None:
    """Print every check with its figure, and the subject of the checks."""
    say()
    print_table(
        _CHECKS,
        [
            (
                check.name,
                styled(check.status, _COLORS.get(check.status, "")),
                "" if check.figure is None else f"{check.figure:.2g}",
                check.expected,
                [check.explanation, *filter(None, [check.reason])],
            )
            for check in report.checks
        ],
    )
    say()
    counts = {
        status: sum(check.status == status for check in report.checks)
        for status in ("passed", "failed", "skipped")
    }
    summary = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    verdict = f"behaviour: {summary}, on {report.subject}, weights {report.weights}"
    say(verdict, _COLORS["passed" if report.passed else "failed"])
