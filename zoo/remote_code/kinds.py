"""The rules by which the methods of blocks and attentions are specialized: caches and attention belong to transformers."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from torch import nn

from zoo.components.attention import CrossAttention, Projections
from zoo.components.latent import Latent
from zoo.remote_code.interface import ATTEND
from zoo.remote_code.specialize import Specializer


def _name(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


class BlockSpecializer(Specializer):
    """A block's forward calls its branches directly; the state stays in the cache."""

    def special_call(self, node: ast.Call, made: ast.Call, target: Any) -> ast.expr | None:
        if not inspect.ismethod(target) or target.__name__ not in ("_mix", "_cross", "_feed"):
            return None
        block: Any = target.__self__
        if target.__name__ == "_mix" and block.mixer is not None:
            beside = [] if block.attention is None else [_name("self.attention")]
            return ast.Call(_name("context.mixed"), [_name("self.mixer"), made.args[0], *beside], [])
        branch, further = {
            "_mix": (block.attention, ["context"]),
            "_cross": (block.cross_attention, ["context", "encoded"]),
            "_feed": (block.feed_forward, []),
        }[target.__name__]
        path = self.node(branch)
        assert path is not None
        return ast.Call(path, [made.args[0], *map(_name, further)], [])

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:  # noqa: N802 - of ast
        made = super().visit_FunctionDef(node)
        if node.name == "layer":
            cross = getattr(self.module, "cross_attention", None) is not None
            made.name = "forward"
            made.args = _arguments(f"self, x, context{', encoded' if cross else ''}")
        return made


def _arguments(text: str) -> ast.arguments:
    function = ast.parse(f"def f({text}): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    return function.args


class AttentionSpecializer(Specializer):
    """Attention goes through the interface of transformers, and keys and values through its cache."""

    def value(self, node: ast.expr) -> Any:
        if ast.unparse(node) == "context.distances.get(position.name)" and not getattr(
            self.module, "compared", False
        ):
            return None
        return super().value(node)

    def special_call(self, node: ast.Call, made: ast.Call, target: Any) -> ast.expr | None:
        text = ast.unparse(node.func)
        if text == "context.cached":
            return ast.Call(_name("context.cached"), [_name("self.layer_idx"), *made.args[1:]], [])
        if text == "merge_heads":  # attend gives B T (H K)
            return made.args[0]
        if text == "self._so_far":
            self.methods.add("_so_far")
            kept = [each for each in made.args if ast.unparse(each) != "past"]
            return ast.Call(_name("self._so_far"), kept, [])
        if text == "BiasKey":
            return ast.Tuple(made.args[:2], ast.Load())
        if text == "functional.attention":
            return ast.Call(_name(ATTEND), [_name("self"), *made.args], made.keywords)
        if text == "self.attend":
            self.methods.add("attend")
            return ast.Call(_name("self.attend"), made.args, [])
        return None

    def visit_Return(self, node: ast.Return) -> Any:  # noqa: N802 - of ast
        value = node.value
        if (
            isinstance(value, ast.Tuple)
            and ast.unparse(value.elts[-1]).endswith("(key, value)")
            and _is_tuple_of_state(value)
        ):
            return ast.Return(self.visit(value.elts[0]))
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:  # noqa: N802 - of ast
        made = super().visit_FunctionDef(node)
        made.args.args = [each for each in made.args.args if each.arg != "past"]
        if node.name == "forward" and not isinstance(self.module, CrossAttention):
            made.body[0] = ast.Expr(
                ast.Constant("B T D -> B T D; the cache keeps keys and values of tokens before.")
            )
        return made

    def visit_Call(self, node: ast.Call) -> Any:  # noqa: N802 - of ast
        made = super().visit_Call(node)
        return _split_by_width(made)


def _is_tuple_of_state(value: ast.Tuple) -> bool:
    """Whether a returned pair is an output and the state: its first is a call, and not a key."""
    return len(value.elts) == 2 and isinstance(value.elts[0], ast.Call)


def _split_by_width(node: Any) -> Any:
    """The same where heads are split by their width alone, so that fewer of them may be on a device."""
    match node:
        case ast.Call(
            func=ast.Attribute(attr="unflatten"),
            args=[_, ast.Tuple(elts=[ast.Constant(value=int()), ast.Constant(value=int())]) as sizes],
        ):
            sizes.elts[0] = ast.Constant(-1)
    return node


def body_of(module: nn.Module) -> type[Specializer]:
    """The rules for a module."""
    from zoo.components.block import Block

    if isinstance(module, Block):
        return BlockSpecializer
    return AttentionSpecializer if isinstance(module, Projections | Latent) else Specializer
