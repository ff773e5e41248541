"""The lint over English: names that hold a noun; first sentences, messages and pages in the field's words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from tests.docs.prose import headings, sentences, word_count, written
from tests.house import NOUNLESS, PACKAGES, REFUSED, first_sentences, nodes, sources

PUBLIC = "specs/kinds/embedding.py: place"
"""The key ``embedding.projection.place`` of the spec language."""

LONGEST = 38
"""The most words of a sentence on a page."""

CALQUES = {
    r"prov(?:e|en|es|ing)": "verify, within a tolerance and on stated cases",
    r"(?<!place )(?<!instead )of (?:its|your|their|zoo's) own": "its own",
    r"(?:is|are|was|were) told": "reports",
    r"(?:so|equally) (?:many|wide|much)": "the number",
    r"in all(?=[.,;:)])": "in total",
    r"among whose|but for|by itself|all of it|is there already": "the plain word",
    r"beside (?:it|them)": "next to",
    r"as they come": "streamed",
    r"in and out": "import and export",
    r"without a word": "silently",
    r"along with it|takes? \S+ along|carry along|come along": "with",
    r"are cut among|is cut among": "sharded",
    r"real weights": "trained weights",
    r"(?:the )?float model": "the fp32 model",
    r"weights in \d bits": "int8 or int4 weights",
    r"stands? for": "is",
    r"on paper": "estimated",
}
"""Turns of phrase that are translated word by word, with what to write."""

_CALQUE = re.compile(rf"\b(?:{'|'.join(CALQUES)})\b", re.IGNORECASE)
_APHORISM = re.compile(r"^(?:What|Where|Does|How good)\b|^On paper$|\?$")
_FREE_RELATIVE = re.compile(r"^(?:\*\*)?What\b")


def page_findings(pages: Iterable[tuple[str, str]] | None = None) -> list[str]:
    """The page and the text of each sentence that is too long or translated, and of headings that nobody searches for."""
    refused: list[str] = []
    for name, text in written() if pages is None else pages:
        refused += [f"{name}: heading: {title}" for title in headings(text) if _APHORISM.search(title)]
        for sentence in sentences(text):
            if (count := word_count(sentence)) > LONGEST:
                refused.append(f"{name}: {count} words: {sentence}")
            if _FREE_RELATIVE.match(sentence) and not sentence.endswith("?"):
                refused.append(f"{name}: begins with What: {sentence}")
            refused += [f"{name}: {found[0]!r}: {sentence}" for found in _CALQUE.finditer(sentence)]
    return refused


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
    for node in nodes(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in NOUNLESS:
            yield node.lineno, node.id
        elif isinstance(node, ast.arg) and node.arg in NOUNLESS:
            yield node.lineno, node.arg


def _error_classes(trees: Iterable[ast.Module]) -> frozenset[str]:
    """The names of UserError and of all classes that inherit from it."""
    bases: dict[str, set[str]] = {}
    for tree in trees:
        for node in _classes(tree):
            bases.setdefault(node.name, set()).update(map(_last_name, node.bases))
    errors = {"UserError"}
    while more := {name for name, parents in bases.items() if parents & errors} - errors:
        errors |= more
    return frozenset(errors)


def _classes(node: ast.AST) -> Iterator[ast.ClassDef]:
    """The classes of a file: statements stand in other statements, and so no expression has to be read."""
    for name in ("body", "orelse", "handlers", "finalbody", "cases"):
        children = getattr(node, name, ())
        for child in children if isinstance(children, list) else ():
            if isinstance(child, ast.ClassDef):
                yield child
            yield from _classes(child)


def _messages(tree: ast.Module, errors: frozenset[str]) -> Iterator[str]:
    """The lines of string literals that are arguments of errors; values in them become ``...``."""
    for node in nodes(tree):
        if isinstance(node, ast.Call) and _last_name(node.func) in errors:
            for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                yield from (line.strip() for line in _text(argument).splitlines())


def _last_name(node: ast.expr) -> str:
    """``Name`` of ``module.Name`` or ``Name[...]``."""
    if isinstance(node, ast.Subscript):
        return _last_name(node.value)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(value) if isinstance(value, ast.Constant) else "..." for value in node.values)
    return ""
