"""LSTM layers.

Shapes: batch B, length T, width D, hidden width H.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from zoo import functional
from zoo.ops.flops import Flops
from zoo.ops.operation import register_operation
from zoo.ops.saved import GradientCall, NodeInfos, SavedTensor
from zoo.ops.tensor_info import TensorInfo
from zoo.ops.tokens import mixed

Weights = tuple[TensorInfo, ...]


def _shape(
    x: TensorInfo, counts: TensorInfo, inputs: Weights, hidden: Weights, biases: Weights
) -> TensorInfo:
    rows, width = inputs[0].shape
    if x.shape[2] != width or counts.shape != x.shape[:1] or hidden[0].shape != (rows, rows):
        raise ValueError(
            f"an LSTM of width {width} cannot read inputs of shape {x.shape} with {counts.shape} lengths"
        )
    return x.with_shape(*x.shape[:2], 2 * rows)


def _flops(
    result: Any, x: TensorInfo, counts: TensorInfo, inputs: Weights, hidden: Weights, biases: Weights
) -> Flops:
    """Products of inputs and states with the gates of both directions; two sums, three sigmoids, two tanh, four products and a sum."""
    rows, width = inputs[0].shape
    tokens = x.shape[0] * x.shape[1]
    return Flops(2 * tokens * 8 * rows * (width + rows), 2 * tokens * rows * (8 + 10))


def _saved(call: GradientCall) -> Iterator[SavedTensor]:
    """The input, in float32, and of each direction its weights, gate after gate, and for each token the gates, the cell and its
    tanh, and the state, which begins as the cell does."""
    x, _, inputs, _, _ = call.args

    def made(infos: NodeInfos) -> int:
        batch, tokens, width = infos[x].shape
        rows = infos[inputs[0]].shape[0]
        wide = torch.promote_types(infos[x].dtype, torch.float32)
        again = 0 if wide == infos[x].dtype else infos[x].elements
        return wide.itemsize * (
            again + batch * tokens + 2 * (4 * rows * (width + rows) + (7 * tokens - 1) * batch * rows)
        )

    yield call.save(x)
    yield call.make(made)


register_operation(functional.lstm, shape=_shape, flops=_flops, saved=_saved, mixing=mixed)
