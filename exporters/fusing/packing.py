"""Padding taken out of an encoder: whatever works on each token by itself works on real tokens alone.

The real tokens of all rows stand one after another, as a batch of N sequences of one token: N 1 ... in the place of
B T ...  Most calls come to the same on them, as they are.  The others, attention above all, see the tokens in their
places again; what they find at padding is some real token's, which means nothing.  Outputs are 0 there.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx

from exporters.fusing.functions import (
    bias_gelu,
    joined_linear,
    multi_head_attention,
    pack,
    skip_norm,
    taken_tokens,
    token_rows,
    unpack,
    unpack_or_zero,
)
from exporters.fusing.rewriter import CALLS, Rewriter
from zoo.tracing.facts import Facts
from zoo.tracing.symbols import Sizes
from zoo.tracing.tracer import PRIMITIVES, size

LAYERS = frozenset({F.linear, joined_linear, F.embedding, F.layer_norm, F.rms_norm, skip_norm, bias_gelu})
"""What is worth packing tokens for."""

# fmt: off
TOKEN_WISE = LAYERS | {
    operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.neg, operator.floordiv,
    torch.add, torch.sub, torch.mul, torch.div, torch.pow, torch.maximum, torch.minimum, torch.neg,
    "add", "sub", "mul", "div", "pow", "neg",
    operator.and_, operator.or_, operator.le, operator.lt, operator.ge, operator.gt, operator.eq, operator.ne,
    torch.abs, torch.sin, torch.cos, torch.tanh, torch.sigmoid, torch.exp, torch.sqrt, torch.rsqrt,
    "abs", "sin", "cos", "tanh", "sigmoid", "exp", "sqrt", "rsqrt",
    F.relu, F.silu, F.gelu, F.dropout, torch.clamp, torch.where, "relu", "clamp", "to", "type", "float", "contiguous",
    torch.mean, torch.sum, torch.amax, torch.topk, F.softmax, "mean", "sum", "amax", "topk", "softmax",
    operator.matmul, torch.matmul, "matmul", operator.getitem, torch.cat, torch.stack,
    torch.unflatten, torch.flatten, torch.reshape, "unflatten", "flatten", "view", "reshape", "expand",
    torch.transpose, torch.unsqueeze, torch.squeeze, "transpose", "unsqueeze", "squeeze",
}
# fmt: on
"""Calls that do not mix tokens where their result has all of them."""


HIDING = frozenset(
    {multi_head_attention, F.scaled_dot_product_attention, operator.matmul, torch.matmul, "matmul"}
)
"""Calls that mix tokens, and in which masks keep padding out."""


def pack_tokens(rewriter: Rewriter) -> str | None:
    """Pack the tokens of an encoder of tokens; returns why not, where it mixes them in other ways than attention.

    Every other graph is left alone.
    """
    inputs = [node for node in rewriter.graph.nodes if node.op == "placeholder"]
    mask = next((node for node in inputs if node.target == "attention_mask"), None)
    if mask is None or mask.meta["facts"][0].shape != inputs[0].meta["facts"][0].shape:
        return None
    return _Packing(rewriter, mask).run()


class _NotTokenWiseError(Exception):
    """A call that cannot be done on packed tokens."""


class _Packing:
    """Tokens being packed.  The old calls stay as they are until all are known to do without padding."""

    def __init__(self, rewriter: Rewriter, mask: fx.Node) -> None:
        self.rewriter, self.mask = rewriter, mask
        self.batch, self.length = _sizes(mask)
        self.here = next(node for node in rewriter.graph.nodes if node.op in CALLS)
        self.tokens = self._insert(taken_tokens, mask, path="")
        self.rows = self._insert(token_rows, mask, path="")
        self.count = self._insert(size, self.tokens, 0, path="")
        self.packed: dict[fx.Node, fx.Node] = {}
        self.gathered: dict[fx.Node, fx.Node] = {}
        self.padded: dict[fx.Node, fx.Node] = {}
        self.changes: list[tuple[fx.Node, fx.Node, fx.Node]] = []

    def run(self) -> str | None:
        for node in list(self.rewriter.graph.nodes):
            self.here = node
            if node.op == "placeholder" or (node.op in CALLS and self._packs(node)):
                continue
            given = [each for each in node.all_input_nodes if each in self.packed]
            if given and node.target is size and node.meta["facts"] in (self.batch, self.length):
                axis = [self.batch, self.length].index(node.meta["facts"])
                self.rewriter.replace(node, self._insert(size, self.mask, axis))
            elif node.target in PRIMITIVES:  # a tensor tells them nothing but where to work
                for each in given:
                    node.replace_input_with(each, self.mask)
            elif node.op == "output":
                self.changes += [
                    (node, each, self._in_places(each, unpack_or_zero, self.mask)) for each in given
                ]
            elif given and not _hides(node):
                name = getattr(node.target, "__name__", node.target)
                return f"{node.meta['path'] or 'the model'}: {name} is not done token by token"
            else:
                self.changes += [(node, each, self._unpacked(each)) for each in given]
        for node, old, new in self.changes:
            node.replace_input_with(old, new)
        return None

    def _packs(self, node: fx.Node) -> bool:
        """Do a call on packed tokens, where it can be done and gains by it."""
        if node.target not in LAYERS and not any(given in self.packed for given in node.all_input_nodes):
            return False
        try:
            self.packed[node] = self._again(node)
        except _NotTokenWiseError:
            return False
        return True

    def _again(self, node: fx.Node) -> fx.Node:
        """The same call on packed tokens."""
        if node.op not in CALLS or node.target not in TOKEN_WISE or self._mixes(node):
            raise _NotTokenWiseError
        args, kwargs = fx.map_arg((node.args, node.kwargs), self._operand)
        result = self._insert(node.target, *args, path=node.meta["path"], **kwargs)
        expected = [self._packed_facts(facts, run) for run, facts in enumerate(node.meta["facts"])]
        if [*result.meta["facts"]] != expected:
            raise _NotTokenWiseError
        return result

    def _mixes(self, node: fx.Node) -> bool:
        """Whether a call mixes tokens though its result has as many as it was given."""
        if node.target in (F.softmax, "softmax"):
            dim: Any = node.kwargs["dim"] if "dim" in node.kwargs else node.args[1]
            return self._axis(node) == dim % len(_sizes(node))
        if node.target in (F.linear, F.embedding, operator.matmul, torch.matmul, "matmul"):
            return self._has_tokens(node.args[1])
        if node.target in ("view", "reshape", torch.reshape):
            return not self._axis(node) == self._axis(node.all_input_nodes[0]) == 1
        return False

    def _operand(self, node: fx.Node) -> Any:
        """An argument as a call on packed tokens takes it."""
        if node in self.packed:
            return self.packed[node]
        facts = node.meta["facts"]
        if isinstance(facts[0], int):
            if facts not in (self.batch, self.length):
                raise _NotTokenWiseError
            return 1 if facts == self.length else self.count
        if not self._has_tokens(node):
            return node
        if node not in self.gathered:
            self.gathered[node] = self._gathered(node)
        return self.gathered[node]

    def _gathered(self, node: fx.Node) -> fx.Node:
        """The real tokens of what is there with padding."""
        axis = self._axis(node)
        if axis == 1:
            return self._insert(pack, node, self.tokens)
        try:
            return self._again(node)
        except _NotTokenWiseError:
            first = self._insert("transpose", node, 1, axis)
            packed = self._insert(pack, first, self.tokens)
            return self._insert("transpose", packed, 1, axis)

    def _unpacked(self, node: fx.Node) -> fx.Node:
        if node not in self.padded:
            whole, part, parts = _part_of(self.packed[node])
            self.padded[node] = (
                self._in_places(node, unpack, self.rows)
                if parts == 1
                else self._insert(unpack, whole, self.rows, part=part, parts=parts)
            )
        return self.padded[node]

    def _in_places(self, node: fx.Node, function: Any, places: fx.Node) -> fx.Node:
        """Packed tokens in their places again: B T ... or B ... T ..."""
        packed, axis = self.packed[node], self._axis(node)
        if axis == 1:
            return self._insert(function, packed, places)
        first = self._insert("transpose", packed, 1, axis)
        padded = self._insert(function, first, places)
        return self._insert("transpose", padded, 1, axis)

    def _insert(self, target: Any, *args: Any, **options: Any) -> fx.Node:
        """A call in front of the one that is looked at."""
        return self.rewriter.insert(self.here, target, *args, **options)

    # ------------------------------------------------------------------------------------------------ sizes

    def _axis(self, node: fx.Node) -> int:
        """The axis of the tokens of a tensor whose first axis is that of the rows."""
        sizes = _sizes(node)
        if sizes.count(self.length) != 1 or sizes.count(self.batch) != 1 or sizes[0] != self.batch:
            raise _NotTokenWiseError
        return sizes.index(self.length)

    def _has_tokens(self, given: Any) -> bool:
        """Whether a tensor has an axis of rows or of tokens."""
        if not isinstance(given, fx.Node) or not isinstance(given.meta["facts"][0], Facts):
            return False
        sizes = _sizes(given)
        return self.batch in sizes or self.length in sizes

    def _packed_facts(self, facts: Any, run: int) -> Any:
        """The facts of a result as it is when tokens are packed."""
        if isinstance(facts, tuple):
            return tuple(self._packed_facts(each, run) for each in facts)
        batch, length = self.batch[run], self.length[run]
        if not isinstance(facts, Facts) or facts.shape.count(batch) != 1 or facts.shape.count(length) != 1:
            raise _NotTokenWiseError
        count: int = self.count.meta["facts"][run]
        alone = {batch: count, length: 1}
        return Facts(tuple(alone.get(each, each) for each in facts.shape), facts.dtype)


def _part_of(node: fx.Node) -> tuple[fx.Node, int, int]:
    """The joined linear layers, N 1 D, that a slice is taken of, which of their equal parts it is, and of how many."""
    whole: Any = node.args[0] if node.target is operator.getitem else None
    if whole is None or whole.target is not joined_linear:
        return node, 0, 1
    index: Any = node.args[1]
    cut, total = index[1], whole.meta["facts"][0].shape[-1]
    width = cut.stop - cut.start
    if total % width or cut.start % width:
        return node, 0, 1
    return whole, cut.start // width, total // width


def _hides(node: fx.Node) -> bool:
    """Whether a call that mixes tokens is told which of them are padding."""
    masks = {multi_head_attention: ("key_mask", "bias"), F.scaled_dot_product_attention: ("attn_mask",)}
    if node.target not in masks:
        return node.target in HIDING
    given = (*node.args[3:5], *(node.kwargs.get(name) for name in masks[node.target]))
    return any(mask is not None for mask in given)


def _sizes(node: fx.Node) -> list[Sizes]:
    """The sizes of a tensor."""
    first, second = node.meta["facts"]
    return list(zip(first.shape, second.shape, strict=True))
