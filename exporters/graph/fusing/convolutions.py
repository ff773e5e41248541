"""Fusion of a causal convolution into CausalConvWithState, of com.microsoft or of opset 27.

The operation takes the columns before the first window as its state. In a target that branches on padding, these are the state of
the mixer itself, and only calls with padding move it out of the way; elsewhere, all calls do, and the operation takes the columns
of :func:`zoo.functional.causal_convolution`.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from exporters.graph.fusing.functions import entry
from exporters.graph.fusing.rewriter import Rewriter, dtype_of
from exporters.target.targets import Target
from zoo import functional
from zoo.ops import TensorInfo

OPERATION = "CausalConvWithState"

REARRANGING = ("transpose", "flatten", F.embedding)
"""The calls between a convolution and its activation, which change no value."""


def causal_conv_with_state(columns: Any, weight: Any, bias: Any, *, activation: str = "none") -> Any:
    """:func:`zoo.functional.depthwise_convolution` of columns, with an activation; the first W - 1 columns are the state."""
    raise NotImplementedError


@entry(causal_conv_with_state)
def _causal_conv_with_state(
    columns: TensorInfo, weight: TensorInfo, bias: TensorInfo | None, **options: Any
) -> TensorInfo:
    batch, channels, length = columns.shape
    return columns.with_shape(batch, channels, length - weight.shape[1] + 1)


def padding_moves(real: Tensor, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Whether any token is padding, and the fields of :func:`zoo.functional.token_alignment`, computed only if so."""
    raise NotImplementedError


@entry(padding_moves)
def _padding_moves(real: TensorInfo, width: int) -> tuple[TensorInfo, ...]:
    batch, length = real.shape
    columns = TensorInfo((batch, length + width - 1), torch.int64)
    return TensorInfo((), torch.bool), columns, TensorInfo(real.shape, torch.int64)


def branching_convolution(x: Any, weight: Any, bias: Any, state: Any, moves: Any) -> Any:
    """:func:`zoo.functional.causal_convolution` after a state, with the results of :func:`padding_moves`, or None without
    padding."""
    raise NotImplementedError


@entry(branching_convolution)
def _branching_convolution(
    x: TensorInfo, weight: TensorInfo, bias: TensorInfo | None, state: TensorInfo, moves: Any
) -> tuple[TensorInfo, TensorInfo]:
    return x, state


def fuse_causal_convolutions(rewriter: Rewriter, target: Target) -> list[str]:
    """Replace depthwise convolutions by the operation; return the reasons for those that remain."""
    unfit: dict[str, str] = {}
    if target.branches_on_padding:
        _branch_on_padding(rewriter, target)
    for node, call in rewriter.semantic_calls(functional.depthwise_convolution):
        if OPERATION not in target.operations:
            continue
        dtype = dtype_of(node)
        if not target.takes(OPERATION, dtype):
            name = str(dtype).removeprefix("torch.")
            unfit.setdefault(name, f"{OPERATION}: {node.meta['path']}: it has no kernel for {name}")
            continue
        silu = _silu_after(node) if target.fuses_convolution_gates else None
        if silu is not None:
            rewriter.replace(silu, silu.args[0])
        name = "none" if silu is None else "silu"
        rewriter.replace(node, rewriter.insert(node, causal_conv_with_state, *call.args, activation=name))
    return [*unfit.values()]


def _branch_on_padding(rewriter: Rewriter, target: Target) -> None:
    """Replace both results of causal convolutions after a state; convolutions of one width share the moves of padding."""
    shared: dict[Any, Any] = {None: None}
    convolved: dict[Any, Any] = {}
    for node, call in rewriter.semantic_calls(functional.causal_convolution):
        *inputs, alignment = call.args
        if inputs[-1] is None or not target.takes(OPERATION, dtype_of(node)):
            continue
        columns = None if alignment is None else alignment.columns
        if columns is not None and columns not in shared:
            aligned = rewriter.semantic_call(columns, functional.token_alignment)
            if aligned is None:
                continue
            shared[columns] = rewriter.insert(columns, padding_moves, *aligned.args)
        key = tuple(inputs)
        if key not in convolved:
            convolved[key] = rewriter.insert(node, branching_convolution, *inputs, shared[columns])
        rewriter.replace(node, rewriter.take(node, convolved[key], call.index))


def _silu_after(node: Any) -> Any:
    """The activation of a result that is at most rearranged before it; None if there is none, or another use."""
    while len(node.users) == 1:
        (user,) = node.users
        if user.target is F.silu:
            return user
        if user.target not in REARRANGING or user.args[user.target is F.embedding] is not node:
            return None
        node = user
    return None
