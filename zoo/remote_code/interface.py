"""The call of the attention interface of transformers, in the forward of the attention itself.

Engines look for it there: vLLM reads the source of every module's forward, and serves those with one such call.
"""

from __future__ import annotations

import ast

ATTEND = "context.attend"
"""What a call of :func:`zoo.functional.attention` is until then: its arguments after the module."""

_CALL = """
interface = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, eager_attention)
mixed, _ = interface(self, {given}, sliding_window=self.sliding_window, **context.layer_options)
mixed = mixed.reshape(*x.shape[:2], -1)
"""

_NAMES = {"scale": "scaling", "sinks": "s_aux"}
"""The interface's names of arguments."""


def dispatched(methods: dict[str, ast.FunctionDef]) -> dict[str, ast.FunctionDef]:
    """The methods of an attention with the call in its forward, and no method ``attend``."""
    attend = methods.get("attend")
    if attend is not None:
        forward = methods["forward"]
        last = forward.body[-1]
        assert isinstance(last, ast.Return)
        assert isinstance(last.value, ast.Call)
        names = [each.arg for each in attend.args.args[1:]]
        given = zip(names, last.value.args, strict=True)
        bound = [
            ast.Assign([ast.Name(name, ast.Store())], value)
            for name, value in given
            if not (isinstance(value, ast.Name) and value.id == name)
        ]
        forward.body[-1:] = [*bound, *attend.body[1:]]
    for tree in methods.values():
        tree.body = [each for statement in tree.body for each in _called(statement)]
    return {name: tree for name, tree in methods.items() if name != "attend"}


def _called(statement: ast.stmt) -> list[ast.stmt]:
    """A statement with the result of the interface in the place of the call, after the statements that give it."""
    call = next((each for each in ast.walk(statement) if _attends(each)), None)
    if not isinstance(call, ast.Call):
        return [statement]
    _, *arguments = call.args
    options = [
        ast.keyword(_NAMES.get(str(each.arg), each.arg), each.value)
        for each in call.keywords
        if ast.unparse(each.value) != "None"
    ]
    given = ", ".join(ast.unparse(each) for each in [*arguments, *options])
    whole = isinstance(statement, ast.Assign) and statement.value is call
    rest = (
        [] if whole and ast.unparse(statement).startswith("mixed =") else [_Replaced(call).visit(statement)]
    )
    return [*ast.parse(_CALL.format(given=given)).body, *rest]


def _attends(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == ATTEND


class _Replaced(ast.NodeTransformer):
    def __init__(self, call: ast.Call) -> None:
        self.call = call

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if node is self.call:
            return ast.Name("mixed", ast.Load())
        made = self.generic_visit(node)
        assert isinstance(made, ast.expr)
        return made
