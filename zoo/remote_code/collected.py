"""The functions, classes and constants that generated code needs, each once, and its imports."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import types
from typing import Any

from specs.base.errors import UserError
from zoo.remote_code.rules import PLAIN

IMPORTED = {
    "torch": "import torch",
    "F": "import torch.nn.functional as F",
    "math": "import math",
    "functools": "import functools",
    "operator": "import operator",
    "nn": "from torch import nn",
    "Tensor": "from torch import Tensor",
    "dataclass": "from dataclasses import dataclass",
    "field": "from dataclasses import field",
    "replace": "from dataclasses import replace",
    "NamedTuple": "from typing import NamedTuple",
}
"""The import of every name from outside the project that components use."""

PROVIDED = {"expert_product"}
"""Names that the template defines in the place of the project's own."""

_ANNOTATIONS = {"Tensor", "None", "int", "float", "bool", "str", "tuple", "list", "dict", "nn", "Module"}


class RemoteCodeError(UserError):
    """A part of a model cannot be written as a modeling file."""


def is_ours(value: object) -> bool:
    """Whether a function or class is defined in this project."""
    return str(getattr(value, "__module__", "")).partition(".")[0] in ("zoo", "specs")


def definition(value: Any) -> ast.FunctionDef | ast.ClassDef:
    """The syntax tree of a function or class, without decorators of the project."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(value)))).body[0]
    assert isinstance(tree, ast.FunctionDef | ast.ClassDef)
    return tree


class Collected:
    """Definitions in the order in which they can be executed."""

    def __init__(self) -> None:
        self.imports: set[str] = set()
        self.definitions: dict[str, str] = {}
        self.aliases: set[str] = set()
        self.entries: dict[int, list[str]] = {}
        """The methods of modules that other modules call, by the id of the module."""
        self.inlining: list[Any] = []
        """The functions whose calls are being replaced by what they return, the innermost last."""
        self._names: dict[int, str] = {}
        self._kept: list[object] = []  # so that ids stay unique

    def reference(self, value: Any, name: str, local: set[str]) -> str:
        """The name of a value in the generated file, which is not one of the names that are ``local`` where it is read."""
        found = self._of(inspect.unwrap(value) if callable(value) else value, name)
        if found not in local:
            return found
        self.aliases.add(found)
        return f"{found}_function"

    def _of(self, value: Any, name: str) -> str:
        value = PLAIN.get(value, value) if isinstance(value, types.FunctionType) else value
        if id(value) in self._names:
            return self._names[id(value)]
        if name in PROVIDED:
            return name
        if isinstance(value, types.FunctionType | type) and is_ours(value):
            return self._define(value, value.__name__)
        if name in IMPORTED and (isinstance(value, types.ModuleType) or not is_ours(value)):
            self.imports.add(name)
            return name
        if isinstance(value, int | float | str | tuple):
            return self._add(value, name, f"{name} = {value!r}")
        raise RemoteCodeError(f"Code that refers to {name} cannot be generated")

    def _define(self, value: Any, name: str) -> str:
        from zoo.remote_code.specialize import Specializer

        name = self._free(name)
        self._names[id(value)] = name
        self._kept.append(value)
        tree = definition(value)
        tree.name = name
        tree.decorator_list = [
            each for each in tree.decorator_list if ast.unparse(each).startswith("dataclass")
        ]
        scope = inspect.getmodule(value).__dict__
        made = Specializer(self, None, scope, tree).visit(tree)
        self.definitions[name] = written(made)
        return name

    def _add(self, value: Any, name: str, text: str) -> str:
        name = self._free(name)
        self._names[id(value)] = name
        self._kept.append(value)
        self.definitions[name] = text
        return name

    def _free(self, name: str) -> str:
        taken = [*self._names.values(), *self.definitions]
        return (
            name
            if name not in taken
            else next(f"{name}{n}" for n in range(2, 99) if f"{name}{n}" not in taken)
        )

    def add_class(self, name: str, text: str) -> str:
        """The name of a class with this text, in which ``{name}`` stands for its own; equal classes are one."""
        for known, stored in self.definitions.items():
            if stored == text.replace("{name}", known):
                return known
        name = self._free(name)
        self.definitions[name] = text.replace("{name}", name)
        return name

    def source(self) -> str:
        """All definitions."""
        texts = []
        for name, text in self.definitions.items():
            alias = f"\n\n{name}_function = {name}" if name in self.aliases else ""
            texts.append(text + alias)
        return "\n\n\n".join(texts)


def annotation(node: ast.expr | None) -> ast.expr | None:
    """An annotation that needs no name of this project, or None."""
    if node is None:
        return None
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return node if names <= _ANNOTATIONS else None


def written(tree: ast.AST) -> str:
    """A syntax tree as text."""
    return ast.unparse(ast.fix_missing_locations(tree))


@functools.cache
def method_definition(function: Any) -> ast.FunctionDef:
    """The syntax tree of a method; copy it before changing it."""
    tree = definition(function)
    assert isinstance(tree, ast.FunctionDef)
    return tree
