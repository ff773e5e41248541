"""The statements that bind the names of a module, read from its source: where a definition that a name stands for really is."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple

from specs.base.errors import UserError


class RemoteCodeError(UserError):
    """A part of a model cannot be written as a modeling file."""


class Key(NamedTuple):
    """The identity of a definition: its module, and its name there."""

    module: str
    name: str


@dataclass(frozen=True)
class External:
    """A name from outside the copied packages, with the statement that imports it."""

    name: str
    statement: str


@dataclass(frozen=True)
class Source:
    """A module's text, in lines of bytes as syntax trees count them, its bindings, and its imports by the bound name."""

    lines: tuple[bytes, ...]
    bindings: dict[str, ast.stmt]
    documented: dict[str, ast.stmt]
    """The string after an assignment that says what it is."""

    def text(self, first: int, last: int) -> bytes:
        """Some lines, counted from 1, the last one included."""
        return b"\n".join(self.lines[first - 1 : last])


@functools.cache
def source_of(module: str) -> Source:
    """The source of a module."""
    text = inspect.getsource(importlib.import_module(module))
    bindings: dict[str, ast.stmt] = {}
    documented: dict[str, ast.stmt] = {}
    body = list(_statements(ast.parse(text).body))
    for statement, following in zip(body, [*body[1:], None], strict=True):
        for name in _bound(statement):
            bindings[name] = statement
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                documented[name] = following
    return Source(tuple(text.encode().split(b"\n")), bindings, documented)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, with those under conditions, such as ``if TYPE_CHECKING``."""
    for statement in body:
        if isinstance(statement, ast.If | ast.Try):
            yield from _statements([*statement.body, *statement.orelse])
        else:
            yield statement


def _bound(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in statement.names]
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    return [
        node.id
        for target in targets
        for node in ast.walk(target)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]


class Resolver:
    """Finds definitions in the copied ``packages``; what comes from elsewhere is imported."""

    def __init__(self, packages: frozenset[str]) -> None:
        self.packages = packages

    def copies(self, module: str) -> bool:
        """Whether the definitions of a module are copied."""
        return module.partition(".")[0] in self.packages

    def resolve(self, module: str, name: str) -> Key | External | ModuleType | None:
        """The object that a name of a module stands for: a definition, an import, or a copied module; None for builtins."""
        statement = source_of(module).bindings.get(name)
        if statement is None:
            return None
        if isinstance(statement, ast.Import):
            alias = next(a for a in statement.names if (a.asname or a.name.partition(".")[0]) == name)
            if self.copies(alias.name):
                return sys.modules[alias.name if alias.asname else name]
            return External(name, f"import {alias.name}{f' as {alias.asname}' if alias.asname else ''}")
        if isinstance(statement, ast.ImportFrom):
            alias = next(a for a in statement.names if (a.asname or a.name) == name)
            origin = _absolute(module, statement)
            if not self.copies(origin):
                renamed = f" as {alias.asname}" if alias.asname else ""
                return External(name, f"from {origin} import {alias.name}{renamed}")
            return self.member(origin, alias.name)
        return Key(module, name)

    def member(self, module: str, name: str) -> Key | External | ModuleType | None:
        """The object that ``module.name`` stands for."""
        importlib.import_module(module)
        if name not in source_of(module).bindings and f"{module}.{name}" in sys.modules:
            return sys.modules[f"{module}.{name}"]
        return self.resolve(module, name)


def _absolute(module: str, statement: ast.ImportFrom) -> str:
    if not statement.level:
        return statement.module or ""
    package = getattr(sys.modules[module], "__package__", None) or module.rpartition(".")[0]
    return importlib.util.resolve_name("." * statement.level + (statement.module or ""), package)
