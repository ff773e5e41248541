"""Tables of the parameter report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from cli.options.sizes import precision_sizes
from cli.terminal.render import Column, print_table, say

if TYPE_CHECKING:
    from zoo.reports.parameters import ModuleParameters, ParameterReport

Row = tuple[str, str, str, int, int]
"""Indented name, kind, weights, parameters of one module, and of all in the row."""

_COUNTS = [Column("parameters", right=True), Column("share", right=True)]
_COLUMNS = [
    Column("module", pinned=True),
    Column("kind", rank=2),
    Column("weights", prose=16, rank=1),
    Column("each", right=True),
    *_COUNTS,
]


def print_parameters(
    report: ParameterReport,
    selected: Sequence[ModuleParameters],
    sizes: Mapping[str, int],
    target: str,
    *,
    depth: int,
    unfold: bool = False,
) -> None:
    """Print the modules down to a depth, the totals, the file sizes, and the comparison with the expected counts.

    Only the ``selected`` modules are counted, if any; runs of equal blocks share a row unless ``unfold``.
    """
    rows: list[Sequence[str]] = []
    tops = [((), [module]) for module in selected] or _runs(report.root, unfold)
    for prefix, run in tops:
        for name, kind, weights, single, count in _rows(prefix, run, 0, depth, unfold):
            alone = f"{single:,}" if single != count else ""
            rows.append([name, kind, weights, alone, f"{count:,}", _share(count, report.total_parameters)])
    if depth:
        print_table(_COLUMNS, rows)
        say()
    total, active = report.total_parameters, report.active_parameters
    counts = {
        "total": total,
        **({"active per token": active} if active != total else {}),
        "embedding tables": report.embedding_parameters,
        "without embedding tables": report.non_embedding_parameters,
    }
    if selected:
        counts["selected"] = sum(module.parameters for module in selected)
    sums = [[name, f"{count:,}", _share(count, total)] for name, count in counts.items()]
    print_table(["", *_COUNTS], sums)
    if sizes:
        say(f"files of an export for {target}: {precision_sizes(sizes)}")
    for comparison in report.comparisons:
        say(str(comparison), "green" if comparison.met else "red")


def _share(count: int, total: int) -> str:
    return f"{count / total:.1%}" if count else ""


def _rows(
    prefix: tuple[str, ...],
    run: list[ModuleParameters],
    level: int,
    depth: int,
    unfold: bool,
    around: int = 1,
) -> Iterator[Row]:
    """The rows of a run of equal modules and of the modules within the first; ``around`` equal modules have such a run."""
    if level >= depth:
        return
    first, indent = run[0], "  " * level
    name, weights = ".".join((*prefix, first.name if prefix or level else first.path)), _weights(first)
    if len(run) > 1:
        name = f"{name}-{run[-1].name} x{len(run)}"
        weights = ""
    yield (
        indent + name,
        first.kind,
        weights,
        first.parameters,
        around * sum(module.parameters for module in run),
    )
    for inner_prefix, inner in _runs(first, unfold):
        yield from _rows(inner_prefix, inner, level + 1, depth, unfold, around * len(run))


def _runs(module: ModuleParameters, unfold: bool) -> list[tuple[tuple[str, ...], list[ModuleParameters]]]:
    """The modules to show within a module, with equal neighbours of a list grouped; a list itself has no row."""
    runs: list[tuple[tuple[str, ...], list[ModuleParameters]]] = []
    for child in module.children:
        if not child.has_weights:
            continue
        if child.kind != "ModuleList":
            runs.append(((), [child]))
            continue
        blocks = [block for block in child.children if block.has_weights]
        groups = (
            [[block] for block in blocks]
            if unfold
            else [list(group) for _, group in groupby(blocks, lambda block: block.likeness)]
        )
        runs += [((child.name,), group) for group in groups]
    return runs


def _weights(module: ModuleParameters) -> str:
    """The shapes of a module's own weights, or the names of the weights that it shares."""
    return ", ".join(
        f"{name} = {module.shared[name]}"
        if name in module.shared
        else f"{name} {' x '.join(map(str, shape))}"
        for name, shape in module.weights.items()
    )
