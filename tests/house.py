"""The house in figures: ``python -m tests.house`` measures the tree that it is run in, ``--json`` for programs.

Rooms are the folders and flat files of a package; an arrow is an import between two of them, typing apart. A floor is a
step of the longest path of arrows; a circle is a set of rooms that import each other. Arrows up are those that have to
go before no circle is left.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import grimp
import networkx as nx  # type: ignore[import-untyped]

import specs.language.load  # noqa: F401 - every kind of part is registered
from specs.base.base import Component

PACKAGES = ("specs", "zoo", "exporters", "cli")

NOUNLESS = ("each", "place", "found", "given", "stated", "told", "how", "at", "here", "there", "usual")
"""Names of variables that say nothing of what they hold."""

REFUSED = re.compile(r"^What\b|\b(?:that|those) of\b|\bso many\b|\bequally many\b")
"""What a first sentence of a docstring is not to have."""

_KIND_TESTS = re.compile(r"isinstance\([^()]*(?:\([^()]*\)[^()]*)*, *\(?(?:[a-z_]+\.)*[A-Z]\w*")
"""Tests for a class, those of the language's own types apart."""

LONG, MANY = 60, 8
"""The most lines of a function, and the most parameters."""


@dataclass(frozen=True)
class Rooms:
    """The import graph of a package, room by room."""

    flat: int
    rooms: int
    arrows: int
    floors: int
    circles: int
    up: int


@dataclass(frozen=True)
class House:
    """The figures of the whole tree."""

    lines: dict[str, int]
    files: dict[str, int]
    rooms: dict[str, Rooms]
    class_tests: int
    ladders: int
    getattr_lines: int
    long_functions: int
    many_parameters: int
    nounless_names: int
    refused_sentences: int


def sources(*folders: str) -> list[Path]:
    """The Python files of some folders that git knows."""
    listed = subprocess.run(["git", "ls-files", *folders], capture_output=True, text=True, check=True).stdout
    return [Path(line) for line in listed.splitlines() if line.endswith(".py") and Path(line).is_file()]


def rooms_of(package: str, graph: grimp.ImportGraph) -> Rooms:
    """The rooms of a package and the arrows between them."""
    arrows = nx.DiGraph()
    for module in graph.modules:
        if module.startswith(f"{package}."):
            room = module.split(".")[1]
            arrows.add_node(room)
            for imported in graph.find_modules_directly_imported_by(module):
                if imported.startswith(f"{package}.") and imported.split(".")[1] != room:
                    arrows.add_edge(room, imported.split(".")[1])
    circles = [rooms for rooms in nx.strongly_connected_components(arrows) if len(rooms) > 1]
    flat = sum(path.parent.name == package for path in sources(package))
    floors = nx.dag_longest_path_length(nx.condensation(arrows)) + 1
    return Rooms(flat, arrows.number_of_nodes(), arrows.number_of_edges(), floors, len(circles), _up(arrows))


def _up(arrows: nx.DiGraph) -> int:
    """The arrows against the best order of the rooms in each circle, found by moving one room at a time."""
    total = 0
    for circle in nx.strongly_connected_components(arrows):
        inside = arrows.subgraph(circle)
        order = sorted(circle, key=lambda room: inside.in_degree(room) - inside.out_degree(room))
        best = _against(inside, order)
        for _ in range(3):
            for room in sorted(circle):
                rest = [other for other in order if other != room]
                tried = [[*rest[:index], room, *rest[index:]] for index in range(len(order))]
                order = min([order, *tried], key=lambda candidate: _against(inside, candidate))
            best = _against(inside, order)
        total += best
    return total


def _against(arrows: nx.DiGraph, order: list[str]) -> int:
    floor = {room: index for index, room in enumerate(order)}
    return sum(floor[room] > floor[imported] for room, imported in arrows.edges)


def _functions(tree: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def _kinds(component: type[Component] = Component) -> set[str]:
    """The names of the classes of specs' parts."""
    names = {component.__name__}
    for kind in component.__subclasses__():
        names |= _kinds(kind)
    return names


def _ladders(function: ast.AST, kinds: set[str]) -> int:
    """The tests by ``isinstance`` of a function that sort a value by its kind: those of values tested for several kinds."""
    tested: dict[str, list[str]] = defaultdict(list)
    for node in ast.walk(function):
        match node:
            case ast.Call(ast.Name("isinstance"), [value, classes]):
                if any(isinstance(part, ast.Name) and part.id in kinds for part in ast.walk(classes)):
                    tested[ast.unparse(value)].append(ast.unparse(classes))
    return sum(len(tests) for tests in tested.values() if len(set(tests)) > 1)


def _nounless(tree: ast.Module) -> int:
    stored = (
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    parameters = (node.arg for node in ast.walk(tree) if isinstance(node, ast.arg))
    return sum(name in NOUNLESS for name in (*stored, *parameters))


@lru_cache(maxsize=1)
def nodes(tree: ast.Module) -> list[ast.AST]:
    """All nodes of a file, kept for the readings of one file in turn."""
    return [*ast.walk(tree)]


def first_sentences(tree: ast.Module) -> list[str]:
    """The first sentences of the docstrings of a file, those of constants and fields included."""
    texts = []
    for node in nodes(tree):
        for child in getattr(node, "body", ()) if not isinstance(node, ast.Lambda | ast.IfExp) else ():
            constant = child.value if isinstance(child, ast.Expr) else None
            if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                texts.append(" ".join(constant.value.split()).split(". ")[0])
    return texts


def house() -> House:
    """Measure the tree in the working directory."""
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True, cache_dir=None)
    every = sources("*.py")
    folders = Counter[str]()
    lines = Counter[str]()
    for path in every:
        folders[path.parts[0]] += 1
        lines[path.parts[0]] += len(path.read_text("utf-8").splitlines())
    figures = Counter[str]()
    kinds = _kinds()
    for path in sources(*PACKAGES):
        text = path.read_text("utf-8")
        tree = ast.parse(text)
        figures["isinstance"] += len(_KIND_TESTS.findall(text))
        figures["ladders"] += sum(_ladders(function, kinds) for function in _functions(tree))
        figures["getattr"] += sum("getattr(" in line for line in text.splitlines())
        for function in _functions(tree):
            arguments = function.args
            count = len([*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs])
            figures["long"] += (function.end_lineno or 0) - function.lineno + 1 > LONG
            figures["many"] += count > MANY
        figures["names"] += _nounless(tree)
        figures["sentences"] += sum(bool(REFUSED.search(sentence)) for sentence in first_sentences(tree))
    return House(
        dict(lines), dict(folders), {package: rooms_of(package, graph) for package in PACKAGES},
        figures["isinstance"], figures["ladders"], figures["getattr"], figures["long"], figures["many"],
        figures["names"], figures["sentences"],
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    measured = house()
    if parser.parse_args().json:
        print(json.dumps(asdict(measured), indent=2))
        return
    outside = sum(count for folder, count in measured.lines.items() if folder != "tests")
    print(f"lines outside tests {outside:,}, in tests {measured.lines['tests']:,}")
    print(
        f"{'package':<10}{'lines':>8}{'files':>7}{'flat':>6}{'rooms':>7}{'arrows':>8}{'floors':>8}{'circles':>9}{'up':>4}"
    )
    for package, rooms in measured.rooms.items():
        print(
            f"{package:<10}{measured.lines[package]:>8,}{measured.files[package]:>7}{rooms.flat:>6}{rooms.rooms:>7}"
            f"{rooms.arrows:>8}{rooms.floors:>8}{rooms.circles:>9}{rooms.up:>4}"
        )
    print(
        f"tests for a class by isinstance {measured.class_tests}, with getattr {measured.getattr_lines}, of several kinds in turn "
        f"{measured.ladders}"
    )
    print(
        f"functions above {LONG} lines {measured.long_functions}, above {MANY} parameters {measured.many_parameters}"
    )
    print(
        f"names without a noun {measured.nounless_names}, sentences that the lint refuses {measured.refused_sentences}"
    )


if __name__ == "__main__":
    main()
