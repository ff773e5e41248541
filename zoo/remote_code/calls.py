"""Calls in a component's methods: short functions and methods are replaced by what they return, others are collected."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import types
from typing import Any

from torch import nn

from zoo.remote_code.collected import RemoteCodeError, is_ours, method_definition
from zoo.remote_code.evaluate import UNKNOWN, Evaluator
from zoo.remote_code.syntax import LAZY, Substituted, attribute, torch_name


class CallSpecializer(Evaluator):
    """Specializes calls of modules, methods and functions."""

    def visit_Call(self, node: ast.Call) -> Any:  # noqa: N802 - of ast
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
        elif (known := torch_name(target)) is not None:
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
        here = next((place for place, each in enumerate(classes) if self.function in vars(each).values()), 0)
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
        if function in self.collected.inlining:
            return None
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
        body = type(self)(self.collected, owner, scope, tree, known, long, methods, function)
        self.collected.inlining.append(function)
        statements = body.block(tree.body)
        self.collected.inlining.pop()
        if len(statements) != 1 or not isinstance(statements[0], ast.Return) or statements[0].value is None:
            return None
        result = statements[0].value
        if owner is not self.module and any(
            isinstance(each, ast.Name) and each.id == "self" for each in ast.walk(result)
        ):
            return None
        uses = [each.id for each in ast.walk(result) if isinstance(each, ast.Name)]
        lazy = any(isinstance(each, LAZY) for each in ast.walk(result))
        for name, each in given.items():
            if (uses.count(name) > 1 and not isinstance(each, ast.Name | ast.Constant)) or (
                lazy and name in uses
            ):
                return None
        self.long |= long
        self.methods |= methods
        return Substituted(given).visit(result)
