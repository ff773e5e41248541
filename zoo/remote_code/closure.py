"""The definitions that a model's forward needs: functions, constants, and of classes the members in use."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

from pydantic import BaseModel
from torch import nn

from zoo.remote_code.bindings import External, Key, RemoteCodeError, Resolver, source_of
from zoo.remote_code.pieces import REPLACED, Piece, Reader, first_line

NAMESPACE = External(SimpleNamespace.__name__, "from types import SimpleNamespace")


class Definition:
    """A function, an assignment, or a class with its header and its members by name, of which ``used`` are copied."""

    def __init__(self, key: Key, node: ast.stmt, value: Any) -> None:
        self.key, self.node, self.value = key, node, value
        self.pieces: list[Piece] = []
        self.members: dict[str, list[tuple[str, ast.stmt, list[ast.stmt]]]] = {}
        self.used: dict[str, list[Piece]] = {}

    @property
    def is_spec(self) -> bool:
        """Whether it is a class of specs, which the file has as a namespace."""
        return isinstance(self.value, type) and issubclass(self.value, BaseModel)

    @property
    def is_module(self) -> bool:
        """Whether it is a class of torch modules, which are made without their constructors."""
        return isinstance(self.value, type) and issubclass(self.value, nn.Module)

    def all_pieces(self) -> Iterator[Piece]:
        """Everything that is copied, in order."""
        yield from self.pieces
        for pieces in self.used.values():
            yield from pieces


class Closure:
    """Collects definitions.  Members of classes are found by name: those that some copied piece reads as an attribute."""

    def __init__(self, packages: frozenset[str]) -> None:
        self.resolver = Resolver(packages)
        self.definitions: dict[Key, Definition] = {}
        self.attributes: set[str] = set()
        self._own: dict[type, set[str]] = {}

    @property
    def size(self) -> int:
        """The number of definitions, of members in use, and of names that are read."""
        return len(self.attributes) + sum(
            1 + len(definition.used) for definition in self.definitions.values()
        )

    def add_value(self, value: Any) -> Key:
        """Add a function or a class of the copied packages."""
        if "." in value.__qualname__ or "<" in value.__qualname__:
            raise RemoteCodeError(
                f"{value.__qualname__} is defined inside another, which remote code cannot copy"
            )
        return self.add(Key(value.__module__, value.__qualname__))

    def add(self, key: Key) -> Key:
        """Add a definition and all that it needs."""
        key = REPLACED.get(key, key)
        if key in self.definitions:
            return key
        source = source_of(key.module)
        node = source.bindings[key.name]
        definition = Definition(key, node, vars(sys.modules[key.module])[key.name])
        self.definitions[key] = definition
        if isinstance(node, ast.ClassDef):
            self._add_class(definition, node)
        else:
            following = source.documented.get(key.name)
            nodes = (
                [node]
                if following is None or not isinstance(node, ast.Assign | ast.AnnAssign)
                else [node, following]
            )
            definition.pieces.append(self._read(key.module, nodes))
        return key

    def needs(self, owner: type, name: str) -> bool:
        """Whether copied code reads an attribute of the instances of a class."""
        return name in self.attributes or any(name in self._own.get(base, ()) for base in owner.__mro__)

    def complete(self) -> None:
        """Add the members of classes that are read, until nothing more is."""
        changed = True
        while changed:
            changed = False
            for definition in [*self.definitions.values()]:
                for name, members in definition.members.items():
                    if name not in definition.used and self._is_read(definition.value, name):
                        definition.used[name] = [
                            self._read(module, nodes, owner=definition) for module, _, nodes in members
                        ]
                        changed = True

    def _add_class(self, definition: Definition, node: ast.ClassDef) -> None:
        docstring = ast.get_docstring(node) is not None
        body = node.body[1:] if docstring else node.body
        first: ast.stmt | None = body[0] if body else None
        last = node.body[0].end_lineno if docstring else first_line(first) - 1 if first else node.end_lineno
        assert last is not None
        if not definition.is_spec:
            header = Reader(self.resolver, definition.key.module).read_header(node, last)
            definition.pieces.append(self._noted(header, None))
        origins = [definition.value]
        if definition.is_spec:
            origins = [base for base in definition.value.__mro__ if self.resolver.copies(base.__module__)]
        for origin in origins:
            tree = source_of(origin.__module__).bindings[origin.__name__]
            assert isinstance(tree, ast.ClassDef)
            for name, nodes in _members(tree):
                if definition.is_module and isinstance(nodes[0], ast.AnnAssign) and nodes[0].value is None:
                    continue  # the type of an attribute
                known = definition.members.setdefault(name, [])
                if not known or (known[0][0] == origin.__module__ and known[0][1] is tree):
                    known.append((origin.__module__, tree, nodes))

    def _is_read(self, owner: type, name: str) -> bool:
        """Whether a member is read, by name, or as the way in which Python or torch reaches it."""
        if issubclass(owner, nn.Module):
            if name == "__init__":
                return False
            others = [base for base in owner.__mro__ if not self.resolver.copies(base.__module__)]
            if any(hasattr(base, name) for base in others) and not name.startswith("_abc"):
                return True
        elif issubclass(owner, BaseModel):
            if name.startswith("__") or name in owner.model_fields:
                return False
        elif name.startswith("__") or not _is_function(owner, name):
            return True
        if name in self.attributes:
            return True
        related = (
            definition.value for definition in self.definitions.values() if isinstance(definition.value, type)
        )
        return any(self.needs(subclass, name) for subclass in related if issubclass(subclass, owner))

    def _read(self, module: str, nodes: list[ast.stmt], owner: Definition | None = None) -> Piece:
        last = nodes[-1].end_lineno
        assert last is not None
        method = owner is not None and owner.is_module
        piece = Reader(self.resolver, module, method=method).read(nodes, first_line(nodes[0]), last)
        return self._noted(piece, owner)

    def _noted(self, piece: Piece, owner: Definition | None) -> Piece:
        if owner is None:
            self.attributes |= piece.attributes | piece.own
        else:
            self.attributes |= piece.attributes
            self._own.setdefault(owner.value, set()).update(piece.own)
        for key in piece.needs:
            self.add(key)
        return piece

    def ordered(self) -> list[Definition]:
        """All definitions, each after those that its own execution needs, and mostly after those that its calls need."""
        written: list[Definition] = []
        reached: set[Key] = set()

        def reach(key: Key) -> None:
            if key not in reached:
                reached.add(key)
                for need in _each_once(n for p in self.definitions[key].all_pieces() for n in p.needs):
                    reach(need)
                write(key)

        def write(key: Key) -> None:
            definition = self.definitions[key]
            if definition not in written:
                for need in _each_once(n for p in definition.all_pieces() for n in p.early):
                    if need != key:
                        write(need)
                if definition not in written:
                    written.append(definition)

        for key in [*self.definitions]:
            reach(key)
        return written


def _each_once(keys: Iterable[Key]) -> list[Key]:
    return list(dict.fromkeys(keys))


def _is_function(owner: type, name: str) -> bool:
    member = vars(owner).get(name)
    return callable(member) or isinstance(member, property | staticmethod | classmethod)


def _members(tree: ast.ClassDef) -> Iterator[tuple[str, list[ast.stmt]]]:
    """The members of a class by name; an assignment comes with the string after it."""
    for statement, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        nodes = [statement]
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            nodes.append(following)
        if isinstance(statement, ast.FunctionDef):
            yield statement.name, [statement]
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    yield target.id, nodes
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id, nodes
