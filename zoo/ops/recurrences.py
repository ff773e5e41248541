"""Recurrences over tokens: the gated and the generalized delta rule."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from zoo import functional
from zoo.functional.delta import chunk_length, matrix_products
from zoo.functional.generalized_delta import generalized_products
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
    return _results(query, value, state)


def _results(query: TensorInfo, value: TensorInfo, state: TensorInfo | None) -> tuple[TensorInfo, TensorInfo]:
    states = TensorInfo(
        (*value.shape[:2], query.shape[3], value.shape[3]), torch.promote_types(query.dtype, torch.float32)
    )
    if state is not None and state.shape != states.shape:
        raise ValueError(f"a delta rule expects a state of shape {states.shape}, got {state.shape}")
    return TensorInfo(value.shape, query.dtype), states


def _generalized_shape(
    query: TensorInfo,
    key: TensorInfo,
    value: TensorInfo,
    decay: TensorInfo,
    recall: TensorInfo,
    erase: TensorInfo,
    state: TensorInfo | None,
    real: TensorInfo | None,
) -> tuple[TensorInfo, TensorInfo]:
    others = (key, decay, recall, erase)
    if value.shape[:3] != query.shape[:3] or any(other.shape != query.shape for other in others):
        raise ValueError(
            "a generalized delta rule cannot combine queries, keys, values, decays and keys that recall and erase of shapes "
            + ", ".join(str(other.shape) for other in (query, key, value, *others[1:]))
        )
    return _results(query, value, state)


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


def _generalized_flops(
    result: tuple[TensorInfo, TensorInfo],
    query: TensorInfo,
    key: TensorInfo,
    value: TensorInfo,
    *rest: Any,
    **options: Any,
) -> Flops:
    batch, heads, tokens, out = value.shape
    width, rows = query.shape[3], batch * heads
    products, cells = generalized_products(rows, tokens, width, out), width * out
    if tokens == 1:
        return Flops(products, rows * (3 * cells + width))
    size = chunk_length(tokens)
    levels = size.bit_length() - 1
    halves = (levels * 5 + 4) * width * size  # decays and products of both keys
    steps = halves + 8 * width * size + 2 * out * size + 2 * size * size + 4 * cells
    return Flops(products, rows * -(-tokens // size) * steps)


def _delta_mixing(node: fx.Node, tokens: TokenAxes) -> Mixing:
    index = 6 if node.target is functional.gated_delta_rule else 7
    real = node.args[index] if len(node.args) > index else node.kwargs.get("real")
    return Mixing.MIXED if real is None else Mixing.MASKED


register_operation(
    functional.gated_delta_rule,
    shape=_delta_shape, flops=_delta_flops, saved=saves_tensors, mixing=_delta_mixing,
)  # fmt: skip
register_operation(
    functional.generalized_delta_rule,
    shape=_generalized_shape, flops=_generalized_flops, saved=saves_tensors, mixing=_delta_mixing,
)  # fmt: skip
