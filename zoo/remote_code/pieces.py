"""Pieces of source that are copied as they are, except for the names in them.

A piece is a function, an assignment, or a part of a class.  Its references to other definitions are edits: the places of the
names, and the definitions that they stand for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType

from zoo.remote_code.bindings import External, Key, RemoteCodeError, Resolver, Source, source_of

Span = tuple[int, int, int, int]
"""First line and column, last line and column; lines count from 1, columns in bytes."""

SEMANTIC = {
    Key("zoo.functional.scores", "attention"): "interface",
    Key("zoo.functional.scores", "attention_bias"): "serving.attention_bias",
}
"""Functions whose calls in a module's methods go through an attribute of the module, where an engine takes part."""

REPLACED = {
    Key("zoo.functional.delta_operation", "gated_delta_rule"): Key("zoo.functional.delta", "delta_rule"),
    Key("zoo.functional.delta_operation", "generalized_delta_rule"): Key(
        "zoo.functional.generalized_delta", "generalized_rule"
    ),
    Key("zoo.functional.expert_products", "expert_product"): Key(
        "zoo.remote_code.products", "expert_product"
    ),
}
"""Plain functions in the place of PyTorch operations that this project defines."""


@dataclass
class Piece:
    """Lines of a module, and what they need.

    edits: by place, the definition whose name belongs there, or text; annotations: places of annotations, with what they name;
    attributes: names of attributes of anything, own: of ``self``; local: names that are bound inside.
    """

    source: Source
    first: int
    last: int
    edits: dict[Span, Key | str] = field(default_factory=dict)
    annotations: dict[Span, list[tuple[Span, Key | External]]] = field(default_factory=dict)
    needs: list[Key] = field(default_factory=list)
    early: list[Key] = field(default_factory=list)
    imports: list[External] = field(default_factory=list)
    attributes: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)
    local: set[str] = field(default_factory=set)
    calls: set[Key] = field(default_factory=set)
    """The semantic functions that are called through an attribute of the module."""
    skipped: set[int] = field(default_factory=set)
    """Lines that are left out: decorators of the copied packages."""


def first_line(node: ast.stmt) -> int:
    """The first line of a statement, its decorators included."""
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])


def span_of(node: ast.expr) -> Span:
    """Where an expression is."""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


class Reader(ast.NodeVisitor):
    """Reads one piece of a module.  ``method``: a method of a torch module, in which semantic functions are rerouted."""

    def __init__(self, resolver: Resolver, module: str, *, method: bool = False) -> None:
        self._resolver, self._module, self._method = resolver, module, method
        self._early = True

    def read(self, nodes: Iterable[ast.AST], first: int, last: int) -> Piece:
        """The piece that some statements make up."""
        self.piece = Piece(source_of(self._module), first, last)
        nodes = list(nodes)
        for node in nodes:
            self.piece.local |= bound_inside(node)
        for node in nodes:
            self.visit(node)
        return self.piece

    def read_header(self, node: ast.ClassDef, last: int) -> Piece:
        """The piece of a class before its members: decorators, bases and docstring."""
        self.piece = Piece(source_of(self._module), first_line(node), last)
        self._decorators(node)
        for part in (*node.bases, *(keyword.value for keyword in node.keywords)):
            self.visit(part)
        return self.piece

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        arguments += [argument for argument in (node.args.vararg, node.args.kwarg) if argument is not None]
        for annotation in [*(argument.annotation for argument in arguments), node.returns]:
            self._annotation(annotation)
        self._decorators(node)
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        early, self._early = self._early, False
        for statement in node.body:
            self.visit(statement)
        self._early = early

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.body)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._annotation(node.annotation)
        self.visit(node.target)
        if node.value is not None:
            self.visit(node.value)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and node.id not in self.piece.local:
            self._refer(node, self._resolver.resolve(self._module, node.id))

    def visit_Call(self, node: ast.Call) -> None:
        target = self._target(node.func)
        if self._method and isinstance(target, Key) and target in SEMANTIC:
            self.piece.edits[span_of(node.func)] = f"self.{SEMANTIC[target]}"
            self.piece.calls.add(target)
            for argument in (*node.args, *node.keywords):
                self.visit(argument)
            return
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        target = self._target(node)
        if target is not None:
            self._refer(node, target)
            return
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        (self.piece.own if own else self.piece.attributes).add(node.attr)
        self.visit(node.value)

    def _target(self, node: ast.expr) -> Key | External | ModuleType | None:
        """The object that a name, or an attribute of a copied module, stands for; None if only a run decides."""
        if isinstance(node, ast.Name):
            return None if node.id in self.piece.local else self._resolver.resolve(self._module, node.id)
        if isinstance(node, ast.Attribute):
            base = self._target(node.value)
            if isinstance(base, ModuleType):
                return self._resolver.member(base.__name__, node.attr)
        return None

    def _refer(self, node: ast.expr, target: Key | External | ModuleType | None) -> None:
        if isinstance(target, External):
            self.piece.imports.append(target)
        elif isinstance(target, Key):
            target = REPLACED.get(target, target)
            self.piece.edits[span_of(node)] = target
            self.piece.needs.append(target)
            if self._early:
                self.piece.early.append(target)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        raise RemoteCodeError(
            f"{self._module} imports inside a function, which remote code cannot\n  Import at the top of the module."
        )

    visit_ImportFrom = visit_Import  # noqa: N815 - of ast

    def _decorators(self, node: ast.FunctionDef | ast.ClassDef) -> None:
        """Leave out decorators of the copied packages: they register something, or mark it for tracers."""
        for decorator in node.decorator_list:
            function = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(self._target(function), Key):
                assert decorator.end_lineno is not None
                self.piece.skipped |= {*range(decorator.lineno, decorator.end_lineno + 1)}
            else:
                self.visit(decorator)

    def _annotation(self, node: ast.expr | None) -> None:
        """Note what an annotation names; it is copied if all of that is in the file anyway."""
        if node is None:
            return
        names: list[tuple[Span, Key | External]] = []
        for part in ast.walk(node):
            if isinstance(part, ast.Name | ast.Attribute):
                target = self._target(part)
                if isinstance(target, Key | External):
                    names.append((span_of(part), target))
        self.piece.annotations[span_of(node)] = names


def bound_inside(tree: ast.AST) -> set[str]:
    """The parameters and assigned names of a function, and of functions inside it; of an assignment, none of its own."""
    if isinstance(tree, ast.FunctionDef):
        return {name for node in ast.walk(tree) if node is not tree for name in _bound_by(node)}
    inner = (node for node in ast.walk(tree) if isinstance(node, ast.Lambda | ast.comprehension))
    return {name for node in inner for part in ast.walk(node) for name in _bound_by(part)}


def _bound_by(node: ast.AST) -> list[str]:
    match node:
        case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
            return [name]
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return [name]
    return []
