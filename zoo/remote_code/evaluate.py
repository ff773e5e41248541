"""Expressions of a component's methods that its spec decides."""

from __future__ import annotations

import ast
import builtins
import copy
import functools
import types
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import nn

from zoo.remote_code.collected import Collected
from zoo.remote_code.syntax import LAZY, attribute, conditional_names, local_names

UNKNOWN = object()
"""The value of an expression that depends on inputs."""

_LATER = ("training", "dtype")
"""What is decided when weights are loaded, or later."""
_PLAIN = (type(None), bool, int, float, str)
_LONGEST = 8


class Evaluator(ast.NodeTransformer):
    """Replaces the expressions of one function, method or class whose value is known; ``module`` is the self of a method, ``known`` are the values of local names.

    ``long`` collects long constants by the name of a class attribute, ``methods`` the names of the methods that are still called; ``function`` is the
    one that is specialized, if it is one.
    """

    def __init__(
        self,
        collected: Collected,
        module: nn.Module | None,
        scope: Mapping[str, Any],
        tree: ast.AST,
        known: Mapping[str, Any] | None = None,
        long: dict[str, Any] | None = None,
        methods: set[str] | None = None,
        function: object = None,
    ) -> None:
        self.function = function
        self.collected, self.module, self.scope = collected, module, scope
        self.values: dict[str, Any] = dict(known or {})
        self.long = {} if long is None else long
        self.methods = set() if methods is None else methods
        self.local = local_names(tree)
        self.varying = conditional_names(tree)

    def value(self, node: ast.expr) -> Any:
        """The value of an expression that no input decides, or ``UNKNOWN``."""
        for each in ast.walk(node):
            if isinstance(each, LAZY):
                return UNKNOWN
            if isinstance(each, ast.Attribute) and each.attr in _LATER:
                return UNKNOWN
            if isinstance(each, ast.Name) and not self._is_known(each.id):
                return UNKNOWN
            if (
                isinstance(each, ast.Call)
                and isinstance(each.func, ast.Attribute)
                and each.func.attr == "parameters"
            ):
                return UNKNOWN
        expression = ast.fix_missing_locations(ast.Expression(copy.deepcopy(node)))
        try:
            with torch.device("meta"), torch.no_grad():
                return eval(  # the source of components of this process
                    compile(expression, "<component>", "eval"),
                    dict(self.scope),
                    {"self": self.module, **self.values},
                )
        except Exception:
            return UNKNOWN

    def _is_known(self, name: str) -> bool:
        if name == "self":
            return self.module is not None
        return name in self.values or (
            name not in self.local and (name in self.scope or hasattr(builtins, name))
        )

    def node(self, value: Any, name: str = "") -> ast.expr | None:
        """A value as an expression, or None where it has none."""
        if isinstance(value, _PLAIN):
            return ast.Constant(value)
        if isinstance(value, tuple) and value and all(isinstance(each, _PLAIN) for each in value):
            if len(value) <= _LONGEST or not name:
                return ast.Tuple([ast.Constant(each) for each in value], ast.Load())
            self.long[name] = value
            return attribute(ast.Name("self", ast.Load()), name)
        if isinstance(value, nn.Module) and self.module is not None:
            for path, module in self.module.named_modules():
                if module is value and path:
                    return functools.reduce(attribute, path.split("."), ast.Name("self", ast.Load()))  # type: ignore[arg-type]
        return None

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", None) or ast.Load(), ast.Load):
            value = UNKNOWN if isinstance(node, ast.Constant) else self.value(node)
            if value is not UNKNOWN:
                name = (
                    node.attr
                    if isinstance(node, ast.Attribute)
                    else node.id
                    if isinstance(node, ast.Name)
                    else ""
                )
                made = self.node(value, name if self.module is not None else "")
                if made is not None:
                    return made
        return super().visit(node)

    # Names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if (
            not isinstance(node.ctx, ast.Load)
            or node.id in self.local
            or node.id == "self"
            or node.id not in self.scope
        ):
            return node
        return ast.Name(self.collected.reference(self.scope[node.id], node.id, self.local), ast.Load())

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        base = self.value(node.value)
        if isinstance(base, types.ModuleType) and base.__name__.startswith(("zoo", "specs")):
            return ast.Name(
                self.collected.reference(getattr(base, node.attr), node.attr, self.local), ast.Load()
            )
        return super().generic_visit(node)  # type: ignore[return-value]

    def block(self, statements: Iterable[ast.stmt]) -> list[ast.stmt]:
        """Specialized statements, up to the first that always leaves."""
        raise NotImplementedError
