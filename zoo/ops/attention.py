"""Scaled dot-product attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch.nn.functional as F
from torch import fx

from zoo.ops.flops import Flops
from zoo.ops.operation import register_operation
from zoo.ops.reductions import SOFTMAX_STEPS
from zoo.ops.saved import GradientCall, NodeInfos, SavedTensor, info
from zoo.ops.tensor_info import TensorInfo
from zoo.ops.tokens import mixed_unless_masked


def _shape(query: TensorInfo, key: TensorInfo, value: TensorInfo, *args: Any, **kwargs: Any) -> TensorInfo:
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"attention cannot combine queries, keys and values of shapes {query.shape}, {key.shape}, {value.shape}"
        )
    return query.with_shape(*query.shape[:-1], value.shape[-1])


def _flops(
    result: TensorInfo,
    query: TensorInfo,
    key: TensorInfo,
    value: TensorInfo,
    attn_mask: TensorInfo | None = None,
    *rest: Any,
    **options: Any,
) -> Flops:
    """softmax(scale * query @ key^T + mask) @ value."""
    scores = query.elements // query.shape[-1] * key.shape[-2]
    steps = 1 + (attn_mask is not None) + SOFTMAX_STEPS
    return Flops(2 * scores * (query.shape[-1] + value.shape[-1]), scores * steps)


def _saved(call: GradientCall) -> Iterator[SavedTensor]:
    return _saved_by_kernel(call) if call.fused else _saved_by_steps(call)


def _saved_by_kernel(call: GradientCall) -> Iterator[SavedTensor]:
    """Queries, keys, values, mask and result, and one float32 log-sum-exp per softmax; never the scores."""
    yield from map(call.save, [*call.tensors, call.node])
    yield call.make(lambda infos: 4 * infos[call.node].elements // infos[call.node].shape[-1])


def _saved_by_steps(call: GradientCall) -> Iterator[SavedTensor]:
    """Scaled queries and keys, values, and the attention weights; keys and values repeated for every head."""
    query, key, value = call.args[:3]

    def repeated(infos: NodeInfos, part: fx.Node) -> int:
        return infos[part].with_shape(*infos[query].shape[:2], *infos[part].shape[2:]).nbytes

    def weights(infos: NodeInfos) -> int:
        return infos[query].with_shape(*infos[query].shape[:3], infos[key].shape[2]).nbytes

    yield call.make(lambda infos: repeated(infos, query))
    yield call.make(lambda infos: repeated(infos, key))
    grouped = info(query).shape[1] != info(key).shape[1]
    copied = grouped or info(call.root(value)).elements != info(value).elements
    yield call.make(lambda infos: repeated(infos, value)) if copied else call.save(value)
    yield call.make(weights)


register_operation(
    F.scaled_dot_product_attention,
    shape=_shape, flops=_flops, saved=_saved, mixing=mixed_unless_masked(3, "attn_mask"),
)  # fmt: skip
