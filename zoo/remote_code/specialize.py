"""Partial evaluation of a component's methods: what its spec decides is computed, and what its inputs decide is left.

Attributes become constants, conditions on them choose a branch, loops over branches are unrolled, and short methods and functions are
replaced by what they return.
"""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from zoo.remote_code.calls import CallSpecializer
from zoo.remote_code.collected import Collected, RemoteCodeError, annotation, definition
from zoo.remote_code.evaluate import UNKNOWN
from zoo.remote_code.syntax import local_names, separate


class Specializer(CallSpecializer):
    """Specializes one function, method or class."""

    # Expressions that constants decide

    def visit_IfExp(self, node: ast.IfExp) -> Any:  # noqa: N802 - of ast
        test = self.value(node.test)
        if test is not UNKNOWN:
            return self.visit(node.body if test else node.orelse)
        made = self.generic_visit(node)
        assert isinstance(made, ast.IfExp)
        if isinstance(made.test, ast.Constant):
            return made.body if made.test.value else made.orelse
        return made.body if ast.dump(made.body) == ast.dump(made.orelse) else made

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:  # noqa: N802 - of ast
        ends, kept = isinstance(node.op, ast.Or), []
        for place, each in enumerate(node.values):
            value = self.value(each)
            if value is UNKNOWN:
                kept.append(self.visit(each))
            elif bool(value) is ends or place == len(node.values) - 1:
                kept.append(self.visit(each))
                break
        last = kept[-1]
        if not ends and isinstance(last, ast.Constant) and not last.value:
            return last  # conditions have no effects
        return kept[0] if len(kept) == 1 else ast.BoolOp(node.op, kept)

    def visit_Compare(self, node: ast.Compare) -> Any:  # noqa: N802 - of ast
        made = self.generic_visit(node)
        assert isinstance(made, ast.Compare)
        parts = [made.left, *made.comparators]
        if all(isinstance(each, ast.Constant) for each in parts):
            return ast.Constant(self.value(made)) if self.value(made) is not UNKNOWN else made
        return made

    # Statements

    def block(self, statements: Iterable[ast.stmt]) -> list[ast.stmt]:
        """Specialized statements, up to the first that always leaves."""
        made: list[ast.stmt] = []
        for statement in statements:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue  # a docstring
            found = self.visit(statement)
            made += found if isinstance(found, list) else [] if found is None else [found]
            if made and isinstance(made[-1], ast.Return | ast.Raise):
                break
        return made

    def visit_Assert(self, node: ast.Assert) -> None:  # noqa: N802 - of ast
        return None

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:  # noqa: N802 - of ast
        kept = annotation(node.annotation)
        value = None if node.value is None else self.visit(node.value)
        if kept is None:
            kept = ast.Name("object", ast.Load())
        return ast.AnnAssign(node.target, kept, value, node.simple)

    def visit_If(self, node: ast.If) -> Any:  # noqa: N802 - of ast
        test = self.value(node.test)
        if test is not UNKNOWN:
            return self.block(node.body if test else node.orelse)
        made = self.visit(node.test)
        if isinstance(made, ast.Constant):
            return self.block(node.body if made.value else node.orelse)
        before = dict(self.values)
        body = self.block(node.body)
        self.values = dict(before)
        orelse = self.block(node.orelse)
        self.values = before
        return ast.If(made, body or [ast.Pass()], orelse)

    def visit_Match(self, node: ast.Match) -> Any:  # noqa: N802 - of ast
        subject = self.value(node.subject)
        if subject is UNKNOWN:
            return self.generic_visit(node)
        for case in node.cases:
            patterns = case.pattern.patterns if isinstance(case.pattern, ast.MatchOr) else [case.pattern]
            found = [self.value(each.value) for each in patterns if isinstance(each, ast.MatchValue)]
            if subject in found or any(isinstance(each, ast.MatchAs) for each in patterns):
                return self.block(case.body)
        return []

    def visit_Assign(self, node: ast.Assign) -> Any:  # noqa: N802 - of ast
        parts = separate(node)
        if parts:
            return self.block(parts)
        fresh = isinstance(node.value, ast.List | ast.Dict | ast.Set)  # may be changed later
        value = UNKNOWN if fresh else self.value(node.value)
        if value is not UNKNOWN and len(node.targets) == 1 and self._bind(node.targets[0], value):
            return []
        node.value = self.visit(node.value)
        for target in node.targets:
            for each in ast.walk(target):
                if isinstance(each, ast.Name):
                    self.values.pop(each.id, None)
        changes = len(node.targets) > 1 or ast.unparse(node.targets[0]) != ast.unparse(node.value)
        return node if changes else []

    def _bind(self, target: ast.expr, value: Any) -> bool:
        """Remember the value of a local name, or of several; whether all can be."""
        if isinstance(target, ast.Name):
            if isinstance(value, torch.Tensor) or target.id in self.varying:
                return False
            self.values[target.id] = value
            return True
        if not isinstance(target, ast.Tuple | ast.List):
            return False
        items = list(value)
        starred = next(
            (place for place, each in enumerate(target.elts) if isinstance(each, ast.Starred)), None
        )
        if starred is not None:
            last = len(items) - (len(target.elts) - starred - 1)
            items = [*items[:starred], items[starred:last], *items[last:]]
        targets = [each.value if isinstance(each, ast.Starred) else each for each in target.elts]
        bound = [self._bind(each, item) for each, item in zip(targets, items, strict=True)]
        return all(bound)

    def visit_For(self, node: ast.For) -> Any:  # noqa: N802 - of ast
        items = self.value(node.iter)
        if items is UNKNOWN or self.module is None:
            return self.generic_visit(node)
        made: list[ast.stmt] = []
        for item in list(items):
            if not self._bind(node.target, item):
                raise RemoteCodeError("A loop over tensors of a component cannot be written")
            made += self.block(copy.deepcopy(node.body))
        return made

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:  # noqa: N802 - of ast
        for each in [*node.args.args, *node.args.kwonlyargs]:
            each.annotation = annotation(each.annotation)
        node.args.defaults = [self.visit(each) for each in node.args.defaults]
        node.returns = annotation(node.returns)
        node.decorator_list = [
            each
            for each in node.decorator_list
            if ast.unparse(each) in ("property", "classmethod", "staticmethod")
        ]
        doc = ast.get_docstring(node, clean=False)
        outer, values = self.local, dict(self.values)
        self.local = self.local | local_names(node)
        body = self.block(node.body) or [ast.Pass()]
        self.local, self.values = outer, values
        node.body = [*([ast.Expr(ast.Constant(doc))] if doc else []), *body]
        return node


def specialized(
    collected: Collected,
    module: nn.Module,
    function: Any,
    body: type[Specializer] = Specializer,
    known: Mapping[str, Any] | None = None,
    long: dict[str, Any] | None = None,
    methods: set[str] | None = None,
) -> ast.FunctionDef:
    """A method of a module, specialized."""
    plain = inspect.unwrap(function)
    tree = copy.deepcopy(definition(plain))
    assert isinstance(tree, ast.FunctionDef)
    scope = inspect.getmodule(plain).__dict__
    made = body(collected, module, scope, tree, known, long, methods, function).visit(tree)
    assert isinstance(made, ast.FunctionDef)
    return made


def class_functions(module: nn.Module, name: str) -> Iterator[Any]:
    """The functions of a name in the classes of a module, the one that acts first."""
    for each in type(module).__mro__:
        if name in vars(each):
            yield vars(each)[name]
