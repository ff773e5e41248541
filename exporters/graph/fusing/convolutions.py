"""Fusion of a causal convolution into CausalConvWithState, of com.microsoft or of opset 27.

The operation takes the columns before the first window as its state: the columns of
:func:`zoo.functional.causal_convolution`, which has moved padding out of the way.
"""

from __future__ import annotations

from typing import Any

from exporters.graph.fusing.functions import entry
from exporters.graph.fusing.rewriter import Rewriter, dtype_of
from exporters.target.targets import Target
from zoo import functional
from zoo.ops import TensorInfo

OPERATION = "CausalConvWithState"


def causal_conv_with_state(columns: Any, weight: Any, bias: Any) -> Any:
    """:func:`zoo.functional.depthwise_convolution` of columns; the first W - 1 columns are the state."""
    raise NotImplementedError


@entry(causal_conv_with_state)
def _causal_conv_with_state(columns: TensorInfo, weight: TensorInfo, bias: TensorInfo | None) -> TensorInfo:
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
        rewriter.replace(node, rewriter.insert(node, causal_conv_with_state, *call.args))
    return [*unfit.values()]
