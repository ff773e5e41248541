"""Recurrences whose state is a matrix per head: linear attention with decay.

Shapes: batch B, length T, heads H, heads of keys G, key width K, value width V, chunk length C.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from zoo import functional
from zoo.functional import matrix_recurrence
from zoo.ops.flops import Flops
from zoo.ops.operation import register_operation
from zoo.ops.saved import GradientCall, NodeInfos, SavedTensor
from zoo.ops.tensor_info import TensorInfo
from zoo.ops.tokens import mixed_unless_masked


def chunk_lengths(tokens: int, longest: int) -> list[int]:
    """The lengths of the chunks of a sequence."""
    return [longest] * (tokens // longest) + [tokens % longest] * (tokens % longest > 0)


def expect_state(function: str, state: TensorInfo | None, *shape: int, like: torch.dtype) -> TensorInfo:
    """The new state of a recurrence over values of a dtype. Raises ValueError if ``state`` has another shape or dtype."""
    new = TensorInfo(shape, torch.promote_types(like, torch.float32))
    if state is not None and state != new:
        raise ValueError(
            f"{function} expects a state of shape {new.shape} and {new.dtype}, got {state.shape} and {state.dtype}"
        )
    return new


def _shape(
    query: TensorInfo,
    key: TensorInfo,
    value: TensorInfo,
    decay: TensorInfo,
    state: TensorInfo | None,
    real: TensorInfo | None,
) -> tuple[TensorInfo, TensorInfo]:
    batch, heads, length, width = value.shape
    if query.shape != key.shape or (key.shape[0], key.shape[2]) != (batch, length) or heads % key.shape[1]:
        raise ValueError(
            f"linear attention cannot combine queries, keys and values of shapes {query.shape}, {key.shape}, {value.shape}"
        )
    if decay.shape != value.shape[:3]:
        raise ValueError(f"linear attention expects decays of shape {value.shape[:3]}, got {decay.shape}")
    return value, expect_state("linear attention", state, batch, heads, key.shape[3], width, like=value.dtype)


def _flops(
    result: Any,
    query: TensorInfo,
    key: TensorInfo,
    value: TensorInfo,
    decay: TensorInfo,
    state: TensorInfo | None,
    real: TensorInfo | None,
) -> Flops:
    """The products of every chunk: queries with keys and with the state, scores with values, keys with values."""
    batch, heads, length, width = value.shape
    _, groups, _, keys = key.shape
    products = others = 0
    for chunk in chunk_lengths(length, matrix_recurrence.CHUNK):
        products += 2 * chunk * (chunk * (groups * keys + heads * width) + 2 * heads * keys * width)
        others += heads * (chunk * (3 * chunk + 2 + 3 * width) + 2 * keys * width)
    masked = 0 if real is None else decay.elements + key.elements
    return Flops(batch * products, batch * others + masked)


def _saved(call: GradientCall) -> Iterator[SavedTensor]:
    """The tensors made by each chunk: contiguous copies of queries, keys and values, scores, decays and states.

    An upper bound if a query, key or value gets no gradient.
    """
    _, key, _, decay, state, real = call.args
    yield from (call.save(operand) for operand in (state, real) if operand is not None)
    last = any(user in call.trained and user.args[1] == 1 for user in call.node.users)

    def made(infos: NodeInfos) -> int:
        value, new = infos[call.node]
        return _made(
            infos[key], value, new, from_zeros=state is None, last=last, decays=decay in call.trained
        )

    yield call.make(made)


def _made(
    key: TensorInfo, value: TensorInfo, state: TensorInfo, *, from_zeros: bool, last: bool, decays: bool
) -> int:
    """The bytes of copies, scores and decays, values weighted by decays, and states.

    ``last``: the last state gets a gradient, so its keys and values are saved too. ``decays``: decays get a gradient, so the
    tensors that they scale are saved too.
    """
    batch, heads, length, width = value.shape
    _, groups, _, keys = key.shape
    lengths = chunk_lengths(length, matrix_recurrence.CHUNK)
    repeated = 0 if groups == heads else heads * keys
    elements = (
        length * (2 * groups * keys + heads * width) + (len(lengths) - 1 + from_zeros) * heads * keys * width
    )
    pairs = 2 * heads + decays * (heads + groups)
    for index, chunk in enumerate(lengths):
        reads = heads * (1 + decays * width) + (index > 0) * repeated
        writes = (index < len(lengths) - 1 or last) * (heads * width + repeated)
        elements += chunk * (chunk * pairs + reads + writes)
    return batch * elements * state.dtype.itemsize


register_operation(
    functional.linear_attention,
    shape=_shape, flops=_flops, saved=_saved, mixing=mixed_unless_masked(5, "real"),
)  # fmt: skip
