"""Fusion of a causal convolution into CausalConvWithState, of com.microsoft or of opset 27.

The operation takes the columns before the first window as its state: the columns of
:func:`zoo.functional.causal_convolution`, which has moved padding out of the way.
"""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F

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


def fuse_causal_convolutions(rewriter: Rewriter, target: Target) -> list[str]:
    """Replace depthwise convolutions by the operation; return the reasons for those that remain."""
    unfit: dict[str, str] = {}
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
