"""Rows of a table of modules: which modules to show, and the sums of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zoo.reports.polynomial import Polynomial


def module_sums(modules: Mapping[str, Polynomial]) -> dict[str, Polynomial]:
    """The sums of each module, including the modules within it."""
    from zoo.reports.polynomial import Polynomial

    parts = defaultdict[str, list[Polynomial]](list)
    for path, polynomial in modules.items():
        names = path.split(".")
        for level in range(1, len(names) + 1):
            parts[".".join(names[:level])].append(polynomial)
    return {path: Polynomial.sum(terms) for path, terms in parts.items()}


def module_rows(
    sums: Mapping[str, Mapping[str, Polynomial]], order: Mapping[str, int], depth: int
) -> Iterator[tuple[str, str]]:
    """The indented names to show, each with the path of its sums; runs of equal layers are merged."""
    paths = dict.fromkeys(path for stage in sums.values() for path in stage)
    children = defaultdict[str, list[str]](list)
    for path in sorted(paths, key=lambda path: order.get(path, len(order))):
        children[path.rpartition(".")[0]].append(path)

    def content(path: str) -> list[object]:
        costs = [stage.get(path) for stage in sums.values()]
        return [costs, [(child.rpartition(".")[2], content(child)) for child in children[path]]]

    def rows(path: str, level: int) -> Iterator[tuple[str, str]]:
        if level >= depth:
            return
        for child in children[path]:
            name = child.rpartition(".")[2]
            if name != "blocks":
                yield "  " * level + name, child
                yield from rows(child, level + 1)
                continue
            for _, group in groupby(sorted(children[child], key=_place), content):
                alike = list(group)
                last = f"-{_place(alike[-1])} x{len(alike)}, each" if len(alike) > 1 else ""
                yield "  " * level + f"{name}.{_place(alike[0])}{last}", alike[0]
                yield from rows(alike[0], level + 1)

    return rows("", 0)


def _place(path: str) -> int:
    return int(path.rpartition(".")[2])
