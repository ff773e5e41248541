"""Matrix products and lookups: linear layers, matmul, convolutions, embeddings."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx

from zoo.ops.flops import Flops, no_flops
from zoo.ops.operation import register_operation
from zoo.ops.saved import GradientCall, NodeInfos, SavedTensor, info, saves_first, saves_other_factor
from zoo.ops.tensor_info import TensorInfo, broadcast, info_on_meta
from zoo.ops.tokens import Mixing, TokenAxes, mixed, separate_unless_second


def _linear(x: TensorInfo, weight: TensorInfo, bias: TensorInfo | None = None) -> TensorInfo:
    if x.shape[-1] != weight.shape[1]:
        raise ValueError(f"a linear layer expects {weight.shape[1]} input features, got {x.shape[-1]}")
    result = x.with_shape(*x.shape[:-1], weight.shape[0])
    if bias is not None and broadcast(bias.shape, result.shape) != result.shape:
        raise ValueError(f"a bias of shape {bias.shape} does not fit {weight.shape[0]} output features")
    return result


def _linear_flops(
    result: TensorInfo, x: TensorInfo, weight: TensorInfo, bias: TensorInfo | None = None
) -> Flops:
    return Flops(2 * result.elements * weight.shape[1], result.elements if bias is not None else 0)


def _linear_factors(call: GradientCall) -> Iterator[SavedTensor]:
    """The factors; an input sliced along tokens is copied, because its rows are not contiguous."""
    x, weight = call.args[:2]
    yield from call.save_for_gradient(x, weight)
    if weight in call.trained:
        yield call.make(lambda infos: infos[x].nbytes) if _cut_inside(x) else call.save(x)


def _cut_inside(x: fx.Node) -> bool:
    """Whether a value is a slice along axes between the first and the last, or the unflattened form of one."""
    while x.target in ("unflatten", torch.unflatten):
        x = x.all_input_nodes[0]
    if x.target is not operator.getitem:
        return False
    own, source = info(x), info(x.all_input_nodes[0])
    return (
        isinstance(source, TensorInfo) and own.ndim == source.ndim and own.shape[1:-1] != source.shape[1:-1]
    )


def _matmul(a: TensorInfo, b: TensorInfo) -> TensorInfo:
    if min(a.ndim, b.ndim) < 2:
        return info_on_meta(torch.matmul, (a, b), {})
    if a.shape[-1] != b.shape[-2] or a.dtype != b.dtype:
        raise ValueError(f"cannot multiply {a.dtype} of shape {a.shape} by {b.dtype} of shape {b.shape}")
    return a.with_shape(*broadcast(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])


def _matmul_flops(result: TensorInfo, a: TensorInfo, b: TensorInfo) -> Flops:
    return Flops(2 * result.elements * a.shape[-1])


def _matmul_factors(call: GradientCall) -> Iterator[SavedTensor]:
    """The factors; a factor that is broadcast along the batch is copied."""
    batch = info(call.node).shape[:-2]
    for factor, wanted in (call.args, call.args[::-1]):
        if wanted in call.trained:
            own = info(factor).shape[:-2]
            yield call.save(factor) if own in (batch, ()) else _repeated(call, factor)


def _repeated(call: GradientCall, factor: fx.Node) -> SavedTensor:
    def size(infos: NodeInfos) -> int:
        own = infos[factor]
        return own.with_shape(*infos[call.node].shape[:-2], *own.shape[-2:]).nbytes

    return call.make(size)


def _matmul_mixing(node: fx.Node, tokens: TokenAxes) -> Mixing:
    """Two tensors with tokens make scores, or a product of weights and values: softmax excludes padding in between."""
    return Mixing.MASKED if tokens.has_tokens(node.args[1]) else Mixing.SEPARATE


def per_axis(value: Any, axes: int) -> list[int]:
    """A convolution option per axis, from one number for all axes or a list."""
    if isinstance(value, str):
        raise TypeError("string padding is not traced: pass numbers")
    return [value] * axes if isinstance(value, int) else [*value]


def _convolution(
    x: TensorInfo,
    weight: TensorInfo,
    bias: TensorInfo | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> TensorInfo:
    axes = weight.ndim - 2
    if x.ndim != weight.ndim:
        raise ValueError(
            f"a {axes}-dimensional convolution expects batch, channels and {axes} axes, got {x.ndim} axes"
        )
    if x.shape[1] != weight.shape[1] * groups:
        raise ValueError(f"a convolution expects {weight.shape[1] * groups} input channels, got {x.shape[1]}")
    steps, around, apart = (per_axis(option, axes) for option in (stride, padding, dilation))
    sizes = tuple(
        (size + 2 * around[i] - apart[i] * (weight.shape[2 + i] - 1) - 1) // steps[i] + 1
        for i, size in enumerate(x.shape[2:])
    )
    if min(sizes) < 1:
        raise ValueError(f"a convolution of shape {weight.shape} does not fit an input of shape {x.shape}")
    return x.with_shape(x.shape[0], weight.shape[0], *sizes)


def _convolution_flops(
    result: TensorInfo,
    x: TensorInfo,
    weight: TensorInfo,
    bias: TensorInfo | None = None,
    *rest: Any,
    **options: Any,
) -> Flops:
    per_output = weight.elements // weight.shape[0]
    return Flops(2 * result.elements * per_output, result.elements if bias is not None else 0)


def _embedding(ids: TensorInfo, weight: TensorInfo, **options: Any) -> TensorInfo:
    return weight.with_shape(*ids.shape, weight.shape[1])


register_operation(
    F.linear,
    shape=_linear, flops=_linear_flops, saved=_linear_factors, mixing=separate_unless_second,
)  # fmt: skip
register_operation(
    operator.matmul, torch.matmul, "matmul",
    shape=_matmul, flops=_matmul_flops, saved=_matmul_factors, mixing=_matmul_mixing,
)  # fmt: skip
register_operation(
    F.conv1d, F.conv2d,
    shape=_convolution, flops=_convolution_flops, saved=saves_other_factor, mixing=mixed,
)  # fmt: skip
register_operation(
    F.embedding,
    shape=_embedding, flops=no_flops, saved=saves_first, mixing=separate_unless_second,
)  # fmt: skip
