"""What specializing asks of syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import torch

LAZY = (ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.DictComp, ast.SetComp, ast.Starred, ast.NamedExpr)
"""Expressions that are evaluated later, or in a scope of their own."""


def separate(node: ast.Assign) -> list[ast.stmt]:
    """An assignment of several values as one for each, where none reads a name that an earlier one sets."""
    target, value = node.targets[0], node.value
    if not (
        isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts)
    ):
        return []
    if any(isinstance(each, ast.Starred) for each in [*target.elts, *value.elts]):
        return []
    set_before: set[str] = set()
    for one, given in zip(target.elts, value.elts, strict=True):
        if set_before & {each.id for each in ast.walk(given) if isinstance(each, ast.Name)}:
            return []
        set_before |= {each.id for each in ast.walk(one) if isinstance(each, ast.Name)}
    return [ast.Assign([one], given) for one, given in zip(target.elts, value.elts, strict=True)]


class Substituted(ast.NodeTransformer):
    """Puts arguments in the places of parameters."""

    def __init__(self, given: Mapping[str, ast.expr]) -> None:
        self._given = given

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._given.get(node.id, node)


def local_names(tree: ast.AST) -> set[str]:
    """The parameters and assigned names of a function and of those inside it; of a class, none of its own."""
    names = set()
    for each in ast.walk(tree):
        if isinstance(each, ast.arg):
            names.add(each.arg)
        elif isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
            names.add(each.id)
        elif isinstance(each, ast.FunctionDef) and each is not tree and not isinstance(tree, ast.ClassDef):
            names.add(each.name)
    return names


def conditional_names(tree: ast.AST) -> set[str]:
    """The names that are assigned where a condition or the number of rounds of a loop decides."""
    names = set()
    for each in ast.walk(tree):
        if isinstance(each, ast.If | ast.For | ast.While | ast.With | ast.Try | ast.Match):
            parts = [
                part
                for field in ("body", "orelse", "finalbody", "handlers", "cases")
                for part in getattr(each, field, [])
            ]
            names |= {
                name.id
                for part in parts
                for name in ast.walk(part)
                if isinstance(name, ast.Name) and not isinstance(name.ctx, ast.Load)
            }
    return names


def attribute(base: ast.expr, name: str) -> ast.expr:
    """base.name, or base[0] for the number of a list's element."""
    if name.isdigit():
        return ast.Subscript(base, ast.Constant(int(name)), ast.Load())
    return ast.Attribute(base, name, ast.Load())


def torch_name(value: Any) -> tuple[str, str] | None:
    """The import and the name of a function of torch."""
    for name, module in (("F", torch.nn.functional), ("torch", torch)):
        for each, found in vars(module).items():
            if found is value and not each.startswith("_"):
                return name, each
    return None
