"""Recurrences with one decay per channel.

Shapes: batch B, length T, channels D, state width N.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import fx

from zoo import functional
from zoo.ops.flops import Flops
from zoo.ops.matrix_recurrence import expect_state
from zoo.ops.operation import register_operation
from zoo.ops.saved import GradientCall, NodeInfos, SavedTensor, info
from zoo.ops.tensor_info import TensorInfo
from zoo.ops.tokens import mixed_unless_masked


def _diagonal(
    x: TensorInfo, decay: TensorInfo, state: TensorInfo | None, real: TensorInfo | None
) -> tuple[TensorInfo, TensorInfo]:
    if decay.shape != x.shape:
        raise ValueError(f"a recurrence expects decays of shape {x.shape}, got {decay.shape}")
    return x, expect_state("a recurrence", state, x.shape[0], x.shape[2], like=x.dtype)


def _diagonal_flops(
    result: Any, x: TensorInfo, decay: TensorInfo, state: TensorInfo | None, real: TensorInfo | None
) -> Flops:
    """The exponential of the decay, a product and a sum."""
    return Flops(other=(3 if real is None else 5) * x.elements)


def _diagonal_saved(call: GradientCall) -> Iterator[SavedTensor]:
    """Decays, and the state before each token."""
    state, real = call.args[2:]
    yield from (call.save(operand) for operand in (state, real) if operand is not None)

    def made(infos: NodeInfos) -> int:
        (_, length, _), new = infos[call.node][0].shape, infos[call.node][1]
        return new.nbytes * (2 * length - (state is not None))

    yield call.make(made)


def _selective(
    x: TensorInfo,
    delta: TensorInfo,
    a: TensorInfo,
    b: TensorInfo,
    c: TensorInfo,
    state: TensorInfo | None,
    real: TensorInfo | None,
) -> tuple[TensorInfo, TensorInfo]:
    channels, width = a.shape
    if delta.shape != x.shape or x.shape[2] != channels:
        raise ValueError(
            f"a selective scan of {channels} channels cannot combine x and delta of shapes {x.shape} and {delta.shape}"
        )
    for part in (b, c):
        if part.shape != (*x.shape[:2], width):
            raise ValueError(
                f"a selective scan expects b and c of shape {(*x.shape[:2], width)}, got {part.shape}"
            )
    return x, expect_state("a selective scan", state, x.shape[0], channels, width, like=x.dtype)


def _selective_flops(
    result: Any,
    x: TensorInfo,
    delta: TensorInfo,
    a: TensorInfo,
    b: TensorInfo,
    c: TensorInfo,
    state: TensorInfo | None,
    real: TensorInfo | None,
) -> Flops:
    """The product of c with the state; the decay and its exponential, the input times b, and the step of the state."""
    states = x.elements * a.shape[1]
    return Flops(2 * states, 5 * states + (1 if real is None else 2) * x.elements)


def _wide_bytes(node: fx.Node, part: fx.Node, infos: NodeInfos) -> int:
    """Bytes of a value in the dtype of the new state."""
    dtype: torch.dtype = infos[node][1].dtype
    return infos[part].elements * dtype.itemsize


def _selective_saved(call: GradientCall) -> Iterator[SavedTensor]:
    """The inputs of the call, with a copy of c; decays; states, both separate and stacked; and x times delta.

    An upper bound if one of them gets no gradient.
    """
    x, delta, a, b, c, state, real = call.args
    for part in (x, delta, a, b, c):
        if info(part).dtype.itemsize < 4 or part is c or (part is delta and real is not None):
            yield call.make(partial(_wide_bytes, call.node, part))
        else:
            yield call.save(part)
    yield from (call.save(operand) for operand in (state, real) if operand is not None)

    def made(infos: NodeInfos) -> int:
        new = infos[call.node][1]
        per_token = infos[x].elements * new.dtype.itemsize
        return new.nbytes * (3 * infos[x].shape[1] - (state is not None)) + per_token

    yield call.make(made)


register_operation(
    functional.diagonal_recurrence,
    shape=_diagonal, flops=_diagonal_flops, saved=_diagonal_saved, mixing=mixed_unless_masked(3, "real"),
)  # fmt: skip
register_operation(
    functional.selective_scan,
    shape=_selective, flops=_selective_flops, saved=_selective_saved, mixing=mixed_unless_masked(6, "real"),
)  # fmt: skip
