"""Removal of padding from an encoder: token-wise operations run on real tokens only.

The real tokens of all rows form a batch of N sequences of one token: N 1 ... instead of B T ... Most calls work on packed
tokens unchanged. Others, attention above all, receive the tokens unpacked; padding then holds the values of some real token,
and masks exclude it. Outputs are 0 at padding.
"""

from __future__ import annotations

import operator
from typing import Any

import torch.nn.functional as F
from torch import fx

from exporters.graph.fusing.functions import (
    bias_gelu,
    joined_linear,
    pack,
    skip_norm,
    taken_tokens,
    token_rows,
    unpack,
    unpack_or_zero,
    wide_linear,
)
from exporters.graph.fusing.rewriter import Rewriter
from zoo.ops import TensorInfo, operation_of, target_name
from zoo.ops.creation import size
from zoo.ops.operation import CALLS
from zoo.ops.tokens import Mixing
from zoo.tracing.symbols import SizePair

LAYERS = frozenset(
    {F.linear, joined_linear, wide_linear, F.embedding, F.layer_norm, F.rms_norm, skip_norm, bias_gelu}
)
"""Operations that make packing worthwhile."""


def pack_tokens(rewriter: Rewriter) -> str | None:
    """Pack the tokens of an encoder; return a reason if a call mixes tokens without a mask.

    Graphs that are not encoders of tokens stay unchanged.
    """
    inputs = [node for node in rewriter.graph.nodes if node.op == "placeholder"]
    mask = next((node for node in inputs if node.target == "attention_mask"), None)
    if mask is None or mask.meta["info"][0].shape != inputs[0].meta["info"][0].shape:
        return None
    rewriter.remove_unused()
    return _Packing(rewriter, mask).run()


class _Packing:
    """Packs the tokens of a graph. The old calls stay until every call is known to work without padding."""

    def __init__(self, rewriter: Rewriter, mask: fx.Node) -> None:
        self.rewriter, self.mask = rewriter, mask
        self.batch, self.length = _sizes(mask)
        self.current = next(node for node in rewriter.graph.nodes if node.op in CALLS)
        self.tokens = self._insert(taken_tokens, mask, path="")
        self.rows = self._insert(token_rows, mask, path="")
        self.count = self._insert(size, self.tokens, 0, path="")
        self.packed: dict[fx.Node, fx.Node] = {}
        self.gathered: dict[fx.Node, fx.Node] = {}
        self.padded: dict[fx.Node, fx.Node] = {}
        self.changes: list[tuple[fx.Node, fx.Node, fx.Node]] = []

    def run(self) -> str | None:
        for node in list(self.rewriter.graph.nodes):
            self.current = node
            if node.op == "placeholder" or (node.op in CALLS and self._packs(node)):
                continue
            packed = [argument for argument in node.all_input_nodes if argument in self.packed]
            if packed and node.target is size and node.meta["info"] in (self.batch, self.length):
                axis = [self.batch, self.length].index(node.meta["info"])
                self.rewriter.replace(node, self._insert(size, self.mask, axis))
            elif node.op in CALLS and (entry := operation_of(node.target)) and entry.device_only:
                for argument in packed:
                    node.replace_input_with(argument, self.mask)
            elif node.op == "output":
                self.changes += [
                    (node, argument, self._in_places(argument, unpack_or_zero, self.mask))
                    for argument in packed
                ]
            elif packed and not self._hides_padding(node):
                return _refusal(node)
            else:
                self.changes += [(node, argument, self._unpacked(argument)) for argument in packed]
        for node, old, new in self.changes:
            node.replace_input_with(old, new)
        return None

    def _packs(self, node: fx.Node) -> bool:
        """Run a call on packed tokens, if possible and if that saves work."""
        if node.target not in LAYERS and not any(
            argument in self.packed for argument in node.all_input_nodes
        ):
            return False
        if (packed := self._again(node)) is not None:
            self.packed[node] = packed
        return packed is not None

    def _again(self, node: fx.Node) -> fx.Node | None:
        """The same call on packed tokens; None if it cannot run on them."""
        if node.op not in CALLS or self._mixing(node) is not Mixing.SEPARATE:
            return None
        operands = dict[fx.Node, fx.Node | int]()
        for argument in node.all_input_nodes:
            if (operand := self._operand(argument)) is None:
                return None
            operands[argument] = operand
        args, kwargs = fx.map_arg((node.args, node.kwargs), operands.__getitem__)
        result = self._insert(node.target, *args, path=node.meta["path"], **kwargs)
        expected = [self._packed_info(info, run) for run, info in enumerate(node.meta["info"])]
        return result if [*result.meta["info"]] == expected else None

    def _mixing(self, node: fx.Node) -> Mixing:
        """Return whether a call mixes tokens; a call without an entry may."""
        entry = operation_of(node.target)
        return Mixing.MIXED if entry is None else entry.mixing(node, self)

    def _hides_padding(self, node: fx.Node) -> bool:
        """Whether a call mixes tokens under a mask that excludes padding."""
        return self._mixing(node) is Mixing.MASKED

    def _operand(self, node: fx.Node) -> fx.Node | int | None:
        """The argument of a call on packed tokens; None if it has no form for them."""
        if node in self.packed:
            return self.packed[node]
        info = node.meta["info"]
        if isinstance(info[0], int):
            return 1 if info == self.length else self.count if info == self.batch else None
        if not self.has_tokens(node):
            return node
        if node not in self.gathered and (axis := self.axis(node)) is not None:
            self.gathered[node] = self._gathered(node, axis)
        return self.gathered.get(node)

    def _gathered(self, node: fx.Node, axis: int) -> fx.Node:
        """The real tokens of a padded value with its tokens along an axis."""
        if axis == 1:
            return self._insert(pack, node, self.tokens)
        if (again := self._again(node)) is not None:
            return again
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
        """Packed tokens, unpacked: B T ... or B ... T ..."""
        packed, axis = self.packed[node], self.axis(node)
        if axis == 1:
            return self._insert(function, packed, places)
        first = self._insert("transpose", packed, 1, axis)
        padded = self._insert(function, first, places)
        return self._insert("transpose", padded, 1, axis)

    def _insert(self, target: Any, *args: Any, **options: Any) -> fx.Node:
        """A new call before the current one."""
        return self.rewriter.insert(self.current, target, *args, **options)

    # ------------------------------------------------------------------------------------------------ sizes

    def axis(self, node: fx.Node) -> int | None:
        """The axis of tokens in a tensor whose first axis is rows; None in others."""
        sizes = _sizes(node)
        known = sizes.count(self.length) == sizes.count(self.batch) == 1 and sizes[0] == self.batch
        return sizes.index(self.length) if known else None

    def has_tokens(self, node: Any) -> bool:
        """Whether a tensor has an axis of rows or of tokens."""
        if not isinstance(node, fx.Node) or not isinstance(node.meta["info"][0], TensorInfo):
            return False
        sizes = _sizes(node)
        return self.batch in sizes or self.length in sizes

    def _packed_info(self, info: Any, run: int) -> Any:
        """The info of a result on packed tokens; None for one without rows and tokens."""
        if isinstance(info, tuple):
            return tuple(self._packed_info(part, run) for part in info)
        batch, length = self.batch[run], self.length[run]
        if not isinstance(info, TensorInfo) or info.shape.count(batch) != 1 or info.shape.count(length) != 1:
            return None
        count: int = self.count.meta["info"][run]
        alone = {batch: count, length: 1}
        return TensorInfo(tuple(alone.get(dim, dim) for dim in info.shape), info.dtype)


def _part_of(node: fx.Node) -> tuple[fx.Node, int, int]:
    """The joined linear layer, N 1 D, that a value is sliced from, the index of the slice, and the number of slices."""
    whole: Any = node.args[0] if node.target is operator.getitem else None
    if whole is None or whole.target is not joined_linear:
        return node, 0, 1
    index: Any = node.args[1]
    cut, total = index[1], whole.meta["info"][0].shape[-1]
    width = cut.stop - cut.start
    if total % width or cut.start % width:
        return node, 0, 1
    return whole, cut.start // width, total // width


def _refusal(node: fx.Node) -> str:
    """The reason why padding cannot be removed from a model with this call."""
    path, name = node.meta["path"] or "the model", target_name(node.target)
    if operation_of(node.target) is None:
        return f"{path}: {name} may mix tokens: it has no entry in zoo.ops"
    return f"{path}: {name} mixes tokens without a mask"


def _sizes(node: fx.Node) -> list[SizePair]:
    """The sizes of a tensor."""
    first, second = node.meta["info"]
    return list(zip(first.shape, second.shape, strict=True))
