"""Mixtures of experts: the products of chosen experts, and their weights."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from zoo import functional
from zoo.ops.flops import Flops, no_flops
from zoo.ops.operation import register_operation
from zoo.ops.saved import GradientCall, SavedTensor
from zoo.ops.tensor_info import TensorInfo
from zoo.ops.tokens import separate, separate_unless_along


def _expert_linear(
    x: TensorInfo, weight: TensorInfo, bias: TensorInfo | None, experts: TensorInfo
) -> TensorInfo:
    if x.shape[-1] != weight.shape[2]:
        raise ValueError(
            f"a linear layer of experts expects {weight.shape[2]} input features, got {x.shape[-1]}"
        )
    if x.shape[:-2] != experts.shape[:-1] or x.shape[-2] not in (1, experts.shape[-1]):
        raise ValueError(f"rows of shape {x.shape} do not fit chosen experts of shape {experts.shape}")
    return x.with_shape(*experts.shape, weight.shape[1])


def _expert_linear_flops(
    result: TensorInfo, x: TensorInfo, weight: TensorInfo, bias: TensorInfo | None, experts: TensorInfo
) -> Flops:
    return Flops(2 * result.elements * weight.shape[2], result.elements if bias is not None else 0)


def _expert_linear_factors(call: GradientCall) -> Iterator[SavedTensor]:
    """Each factor whose counterpart gets a gradient, and the expert of each row."""
    x, weight, _, experts = call.args
    yield from call.save_for_gradient(x, weight)
    yield from call.save_for_gradient(weight, x)
    yield call.save(experts)


def _gather(x: TensorInfo, dim: int, index: TensorInfo) -> TensorInfo:
    return x.with_shape(*index.shape)


def _gathered(call: GradientCall) -> Iterator[SavedTensor]:
    """The tensor, only for its shape, and the index."""
    x, _, index = call.args
    yield call.save(x)
    yield call.save(index)


register_operation(
    functional.expert_linear,
    shape=_expert_linear, flops=_expert_linear_flops, saved=_expert_linear_factors, mixing=separate,
)  # fmt: skip
register_operation(
    torch.gather, "gather",
    shape=_gather, flops=no_flops, saved=_gathered, mixing=separate_unless_along(1),
)  # fmt: skip
