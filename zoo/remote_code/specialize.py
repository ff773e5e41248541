"""Partial evaluation of a component's methods: what its spec decides is computed, and what its inputs decide is left.

Attributes become constants, conditions on them choose a branch, loops over branches are unrolled, and short methods and functions are
replaced by what they return.
"""

from __future__ import annotations

import ast
import builtins
import copy
import functools
import inspect
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from zoo.remote_code.collected import (
    Collected,
    RemoteCodeError,
    annotation,
    definition,
    is_ours,
    method_definition,
)

UNKNOWN = object()
"""The value of an expression that depends on inputs."""

_PLAIN = (type(None), bool, int, float, str)
_LONGEST = 8
_LAZY = (ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.DictComp, ast.SetComp, ast.Starred, ast.NamedExpr)


class Specializer(ast.NodeTransformer):
    """Specializes one function, method or class; ``module`` is the self of a method, ``known`` are the values of local names.

    ``long`` collects long constants by the name of a class attribute, ``methods`` the names of the methods that are still called.
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
    ) -> None:
        self.collected, self.module, self.scope = collected, module, scope
        self.values: dict[str, Any] = dict(known or {})
        self.long = {} if long is None else long
        self.methods = set() if methods is None else methods
        self.local = local_names(tree)
        self.varying = conditional_names(tree)

    def value(self, node: ast.expr) -> Any:
        """The value of an expression that no input decides, or ``UNKNOWN``."""
        if ast.unparse(node) == "positions.ndim == 3":  # positions along several axes are refused
            return False
        for each in ast.walk(node):
            if isinstance(each, _LAZY) or (isinstance(each, ast.Attribute) and each.attr == "training"):
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

    # Calls

    def visit_Call(self, node: ast.Call) -> Any:
        target = self.value(node.func)
        arguments = [self.visit(each) for each in node.args]
        keywords = [ast.keyword(each.arg, self.visit(each.value)) for each in node.keywords]
        made = ast.Call(node.func, arguments, keywords)
        special = self.special_call(node, made, target)
        if special is not None:
            return special
        if isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "super()":
            return self._base_call(node.func.attr, made)
        if target is UNKNOWN:
            made.func = self.visit(node.func)
            return made
        if isinstance(target, nn.Module):
            return self._module_call(target, made)
        if isinstance(target, functools.partial):
            bound = [found for each in target.args if (found := self.node(each)) is not None]
            stated = [ast.keyword(name, self._literal(each)) for name, each in target.keywords.items()]
            return self._function_call(
                target.func, ast.Call(made.func, [*bound, *arguments], [*stated, *keywords])
            )
        if inspect.ismethod(target) and target.__self__ is self.module:
            return self._method_call(target.__name__, target.__func__, made)
        if inspect.ismethod(target) and isinstance(target.__self__, nn.Module):
            inlined = self._inlined(target.__self__, target.__func__, made, method=True)
            path = self.node(target.__self__)
            if inlined is not None:
                return inlined
            if path is None:
                raise RemoteCodeError(
                    f"A call of {type(target.__self__).__name__} from another component cannot be written"
                )
            self.collected.entries.setdefault(id(target.__self__), []).append(target.__name__)
            made.func = attribute(path, target.__name__)
            return made
        return self._function_call(target, made)

    def special_call(self, node: ast.Call, made: ast.Call, target: Any) -> ast.expr | None:
        """What a call becomes by the rules of a kind of component, or None for an ordinary call."""
        return None

    def _literal(self, value: Any) -> ast.expr:
        made = self.node(value)
        if made is None:
            raise RemoteCodeError(f"A constant of type {type(value).__name__} cannot be written")
        return made

    def _module_call(self, target: nn.Module, made: ast.Call) -> ast.expr:
        nothing = isinstance(target, nn.Identity) or (isinstance(target, nn.Dropout) and target.p == 0)
        if nothing:
            return made.args[0]
        if is_ours(type(target)) and not [*target.parameters(), *target.children()]:
            function = type(target).forward
            inlined = self._inlined(target, function, made, method=True)
            if inlined is not None:
                return inlined
        elif is_ours(type(target)) and not [*target.parameters()]:
            inlined = self._inlined(target, type(target).forward, made, method=True)
            if inlined is not None:
                return inlined
        path = self.node(target)
        if path is None:
            raise RemoteCodeError(
                f"A call of {type(target).__name__} from another component cannot be written"
            )
        made.func = path
        return made

    def _function_call(self, target: Any, made: ast.Call) -> ast.expr:
        if isinstance(target, types.FunctionType) and is_ours(target):
            if target is inspect.unwrap(target):
                inlined = self._inlined(None, target, made, method=False)
                decides = any(isinstance(each, ast.Constant) for each in made.args)
                if inlined is not None and (decides or inlined in made.args):
                    return inlined
            name = self.collected.reference(target, target.__name__, self.local)
            made.func = ast.Name(name, ast.Load())
        elif isinstance(target, type) and is_ours(target):
            made.func = ast.Name(self.collected.reference(target, target.__name__, self.local), ast.Load())
        elif (known := _torch_name(target)) is not None:
            self.collected.imports.add(known[0])
            made.func = attribute(ast.Name(known[0], ast.Load()), known[1])
        else:
            made.func = self.visit(made.func)
        return made

    def _method_call(self, name: str, function: Any, made: ast.Call) -> ast.expr:
        inlined = self._inlined(self.module, function, made, method=True)
        if inlined is not None:
            return inlined
        self.methods.add(name)
        made.func = attribute(ast.Name("self", ast.Load()), name)
        return made

    def _base_call(self, name: str, made: ast.Call) -> ast.expr:
        """A call of the method of a base class of this project; torch's are called as they are."""
        classes = () if self.module is None else type(self.module).__mro__
        here = next((place for place, each in enumerate(classes) if name in vars(each)), 0)
        base = next((each for each in classes[here + 1 :] if name in vars(each)), None)
        if base is None or not is_ours(base):
            made.func = ast.parse(f"super().{name}", mode="eval").body
            return made
        inlined = self._inlined(self.module, vars(base)[name], made, method=True)
        if inlined is not None:
            return inlined
        self.methods.add(f"{name}:{base.__name__}")
        made.func = attribute(ast.Name("self", ast.Load()), f"base_{name}")
        return made

    def _inlined(
        self, owner: nn.Module | None, function: Any, made: ast.Call, *, method: bool
    ) -> ast.expr | None:
        """What a function that is one return statement gives for these arguments; None where it has other statements."""
        tree = copy.deepcopy(method_definition(inspect.unwrap(function)))
        names = [each.arg for each in [*tree.args.args, *tree.args.kwonlyargs]]
        names = names[1:] if method else names
        given: dict[str, ast.expr] = dict(zip(names, made.args, strict=False))
        given |= {each.arg: each.value for each in made.keywords if each.arg}
        if set(given) != set(names) or tree.args.vararg or tree.args.kwarg:
            return None
        known = {name: found for name, each in given.items() if (found := self.value(each)) is not UNKNOWN}
        scope = inspect.getmodule(inspect.unwrap(function)).__dict__
        long: dict[str, Any] = {}
        methods: set[str] = set()
        body = type(self)(self.collected, owner, scope, tree, known, long, methods)
        statements = body.block(tree.body)
        if len(statements) != 1 or not isinstance(statements[0], ast.Return) or statements[0].value is None:
            return None
        result = statements[0].value
        if owner is not self.module and any(
            isinstance(each, ast.Name) and each.id == "self" for each in ast.walk(result)
        ):
            return None
        uses = [each.id for each in ast.walk(result) if isinstance(each, ast.Name)]
        lazy = any(isinstance(each, _LAZY) for each in ast.walk(result))
        for name, each in given.items():
            if (uses.count(name) > 1 and not isinstance(each, ast.Name | ast.Constant)) or (
                lazy and name in uses
            ):
                return None
        self.long |= long
        self.methods |= methods
        return _Substituted(given).visit(result)

    # Expressions that constants decide

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        test = self.value(node.test)
        if test is not UNKNOWN:
            return self.visit(node.body if test else node.orelse)
        made = self.generic_visit(node)
        assert isinstance(made, ast.IfExp)
        if isinstance(made.test, ast.Constant):
            return made.body if made.test.value else made.orelse
        return made.body if ast.dump(made.body) == ast.dump(made.orelse) else made

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
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

    def visit_Compare(self, node: ast.Compare) -> Any:
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

    def visit_Assert(self, node: ast.Assert) -> None:
        return None

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        kept = annotation(node.annotation)
        value = None if node.value is None else self.visit(node.value)
        if kept is None:
            kept = ast.Name("object", ast.Load())
        return ast.AnnAssign(node.target, kept, value, node.simple)

    def visit_If(self, node: ast.If) -> Any:
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

    def visit_Match(self, node: ast.Match) -> Any:
        subject = self.value(node.subject)
        if subject is UNKNOWN:
            return self.generic_visit(node)
        for case in node.cases:
            patterns = case.pattern.patterns if isinstance(case.pattern, ast.MatchOr) else [case.pattern]
            found = [self.value(each.value) for each in patterns if isinstance(each, ast.MatchValue)]
            if subject in found or any(isinstance(each, ast.MatchAs) for each in patterns):
                return self.block(case.body)
        return []

    def visit_Assign(self, node: ast.Assign) -> Any:
        parts = _separate(node)
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

    def visit_For(self, node: ast.For) -> Any:
        items = self.value(node.iter)
        if items is UNKNOWN or self.module is None:
            return self.generic_visit(node)
        made: list[ast.stmt] = []
        for item in list(items):
            if not self._bind(node.target, item):
                raise RemoteCodeError("A loop over tensors of a component cannot be written")
            made += self.block(copy.deepcopy(node.body))
        return made

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        for each in [*node.args.args, *node.args.kwonlyargs]:
            each.annotation = annotation(each.annotation)
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


def _separate(node: ast.Assign) -> list[ast.stmt]:
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


class _Substituted(ast.NodeTransformer):
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


def _torch_name(value: Any) -> tuple[str, str] | None:
    """The import and the name of a function of torch."""
    for name, module in (("F", torch.nn.functional), ("torch", torch)):
        for each, found in vars(module).items():
            if found is value and not each.startswith("_"):
                return name, each
    return None


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
    made = body(collected, module, scope, tree, known, long, methods).visit(tree)
    assert isinstance(made, ast.FunctionDef)
    return made


def class_functions(module: nn.Module, name: str) -> Iterator[Any]:
    """The functions of a name in the classes of a module, the one that acts first."""
    for each in type(module).__mro__:
        if name in vars(each):
            yield vars(each)[name]
