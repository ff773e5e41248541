"""Recurrences over tokens: the gated delta rule."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from zoo import functional
from zoo.functional.delta import chunk_length, matrix_products
from zoo.ops.flops import Flops
from zoo.ops.operation import register_operation
from zoo.ops.saved import saves_tensors
from zoo.ops.tensor_info import TensorInfo
from zoo.ops.tokens import Mixing, TokenAxes


def _delta_shape(
    query: TensorInfo,
    key: TensorInfo,
    value: TensorInfo,
    decay: TensorInfo,
    beta: TensorInfo,
    state: TensorInfo | None,
    real: TensorInfo | None,
) -> tuple[TensorInfo, TensorInfo]:
    batch, groups, tokens, width = query.shape
    heads = value.shape[1]
    per_head = (batch, heads, tokens)
    fits = (
        key.shape == query.shape
        and heads % groups == 0
        and value.shape[:3] == per_head == beta.shape
        and decay.shape in (per_head, (*per_head, width))
    )
    if not fits:
        raise ValueError(
            "a delta rule cannot combine queries, keys, values, decays and updates of shapes "
            f"{query.shape}, {key.shape}, {value.shape}, {decay.shape}, {beta.shape}"
        )
    states = TensorInfo(
        (batch, heads, width, value.shape[3]), torch.promote_types(query.dtype, torch.float32)
    )
    if state is not None and state.shape != states.shape:
        raise ValueError(f"a delta rule expects a state of shape {states.shape}, got {state.shape}")
    return TensorInfo(value.shape, query.dtype), states


def _delta_flops(
    result: tuple[TensorInfo, TensorInfo],
    query: TensorInfo,
    key: TensorInfo,
    value: TensorInfo,
    decay: TensorInfo,
    *rest: Any,
    **options: Any,
) -> Flops:
    batch, heads, tokens, out = value.shape
    width, rows, per_channel = query.shape[3], batch * heads, decay.ndim == 4
    products = matrix_products(rows, tokens, width, out, per_channel=per_channel)
    decays, cells = width if per_channel else 1, width * out
    if tokens == 1:
        return Flops(products, rows * (2 * cells + 2 * out + decays))
    size = chunk_length(tokens)
    pairs, levels = size * size, size.bit_length() - 1
    pair_steps = (levels * 5 + 4) * width * size // 2 if per_channel else 5 * pairs
    steps = pair_steps + 3 * decays * size + 4 * width * size + 3 * out * size + pairs + 2 * cells
    return Flops(products, rows * -(-tokens // size) * steps)


def _delta_mixing(node: fx.Node, tokens: TokenAxes) -> Mixing:
    real = node.args[6] if len(node.args) > 6 else node.kwargs.get("real")
    return Mixing.MIXED if real is None else Mixing.MASKED


register_operation(
    functional.gated_delta_rule,
    shape=_delta_shape, flops=_delta_flops, saved=saves_tensors, mixing=_delta_mixing,
)  # fmt: skip
