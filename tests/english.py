"""The lint over English: names that hold a noun, first sentences and messages in the field's words."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tests.house import NOUNLESS, PACKAGES, REFUSED, first_sentences, sources

PUBLIC = "specs/kinds/embedding.py:158: place"
"""The key ``embedding.projection.place`` of the spec language."""


def findings() -> list[str]:
    """The place of every name, first sentence and message that the lint refuses, in the working directory."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sources(*PACKAGES)}
    errors = _error_classes(trees.values())
    refused: list[str] = []
    for path, tree in trees.items():
        refused += [f"{path}:{line}: {name}" for line, name in _nounless(tree)]
        texts = [*first_sentences(tree), *_messages(tree, errors)]
        refused += [f"{path}: {text}" for text in texts if REFUSED.search(text)]
    return refused


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
