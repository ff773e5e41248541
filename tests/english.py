"""The lint over English: names that hold a noun, first sentences and messages in the field's words.

``english.json`` has what remains, per room and kind: ``python -m tests.english`` lowers it to the present figures, and refuses to
raise it. A room without an entry has none left.
"""

from __future__ import annotations

import ast
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.house import NOUNLESS, PACKAGES, REFUSED, first_sentences, sources

ALLOWANCE = Path(__file__).with_suffix(".json")

Findings = dict[str, dict[str, list[str]]]
"""The places that the lint refuses, by kind and room."""


def room_of(path: Path) -> str:
    """The package and the folder of a file inside it: ``exporters/graph``."""
    return "/".join(path.parts[: min(2, len(path.parts) - 1)])


def findings() -> Findings:
    """Every name, first sentence and message that the lint refuses, in the working directory."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sources(*PACKAGES)}
    errors = _error_classes(trees.values())
    found: Findings = {kind: defaultdict(list) for kind in ("names", "sentences", "messages")}
    for path, tree in trees.items():
        room = room_of(path)
        found["names"][room] += [f"{path}:{line}: {name}" for line, name in _nounless(tree)]
        for kind, texts in (("sentences", first_sentences(tree)), ("messages", _messages(tree, errors))):
            found[kind][room] += [f"{path}: {text}" for text in texts if REFUSED.search(text)]
    return {kind: {room: lines for room, lines in rooms.items() if lines} for kind, rooms in found.items()}


def allowance() -> dict[str, dict[str, int]]:
    """The number of refused places that each room may still have, by kind."""
    recorded: dict[str, dict[str, int]] = json.loads(ALLOWANCE.read_text("utf-8"))
    return recorded


def _nounless(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in NOUNLESS:
            yield node.lineno, node.id
        elif isinstance(node, ast.arg) and node.arg in NOUNLESS:
            yield node.lineno, node.arg


def _error_classes(trees: Iterable[ast.Module]) -> frozenset[str]:
    """The names of UserError and of all classes that inherit from it."""
    bases: dict[str, set[str]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                bases.setdefault(node.name, set()).update(
                    ast.unparse(base).split(".")[-1] for base in node.bases
                )
    errors = {"UserError"}
    while more := {name for name, parents in bases.items() if parents & errors} - errors:
        errors |= more
    return frozenset(errors)


def _messages(tree: ast.Module, errors: frozenset[str]) -> Iterator[str]:
    """The lines of string literals that are arguments of errors; values in them become ``...``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in errors:
            for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                yield from (line.strip() for line in _text(argument).splitlines())


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(value) if isinstance(value, ast.Constant) else "..." for value in node.values)
    return ""


def counts(found: Findings) -> dict[str, dict[str, int]]:
    """The number of findings by kind and room, in order."""
    return {kind: {room: len(rooms[room]) for room in sorted(rooms)} for kind, rooms in found.items()}


def main() -> None:
    now, before = counts(findings()), allowance()
    more = [
        f"{kind} of {room}: {count}, {before[kind].get(room, 0)} allowed"
        for kind, rooms in now.items()
        for room, count in rooms.items()
        if count > before[kind].get(room, 0)
    ]
    if more:
        sys.exit("\n".join(more))
    ALLOWANCE.write_text(json.dumps(now, indent=2) + "\n")


if __name__ == "__main__":
    main()
