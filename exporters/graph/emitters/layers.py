"""Emitters of functions with weights, and of attention."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from exporters.graph.emitters.registry import Call, Operand, emits
from exporters.graph.fusing.functions import bias_gelu, skip_norm, unit_length
from exporters.graph.values import Value
from exporters.target.targets import CONTRIB
from zoo.ops.products import per_axis

RMS_NORMS = ("RMSNormalization", "SimplifiedLayerNormalization")
"""The operations that are an RMS norm: of standard ONNX, and of ONNX Runtime in every opset."""


@emits(F.conv1d, F.conv2d)
def _convolution(
    call: Call,
    x: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Value:
    axes, parameters = weight.ndim - 2, [weight.value, *([bias.value] if bias else [])]
    options: dict[str, Any] = {
        "strides": per_axis(stride, axes),
        "pads": per_axis(padding, axes) * 2,
        "dilations": per_axis(dilation, axes),
        "group": groups,
    }
    outputs = weight.static(0) // groups
    if groups == 1 or outputs <= 4 or outputs % 4 == 0 or not call.graph.target.whole_groups:
        return call.op("Conv", x.value, *parameters, **options)
    # The last output of a group is repeated up to a whole vector, and the copies are left out afterwards.
    whole = outputs + -outputs % 4
    taken = call.graph.ints(
        *(first + min(n, outputs - 1) for first in range(0, groups * outputs, outputs) for n in range(whole))
    )
    kept = call.graph.ints(*(first + n for first in range(0, groups * whole, whole) for n in range(outputs)))
    longer = [call.op("Gather", parameter, taken, axis=0) for parameter in parameters]
    return call.op("Gather", call.op("Conv", x.value, *longer, **options), kept, axis=1)


@emits(F.dropout)
def _dropout(call: Call, x: Operand, p: float = 0.5, training: bool = True, inplace: bool = False) -> Value:
    if training and p:
        raise NotImplementedError("Dropout must be off outside training: pass training=self.training")
    return x.value


@emits(F.layer_norm)
def _layer_norm(
    call: Call,
    x: Operand,
    shape: Any,
    weight: Operand | None = None,
    bias: Operand | None = None,
    eps: float = 1e-5,
) -> Value:
    scale = weight.value if weight else call.graph.constant(np.ones(shape), x.dtype)
    return call.op(
        "LayerNormalization", x.value, scale, *([bias.value] if bias else []), axis=-len(shape), epsilon=eps
    )


@emits(F.rms_norm)
def _rms_norm(
    call: Call, x: Operand, shape: Any, weight: Operand | None = None, eps: float | None = None
) -> Value:
    """Return x / sqrt(mean(x ** 2) + eps) * weight, computed in float32 for every dtype."""
    least = torch.finfo(x.dtype).eps if eps is None else eps
    operation = _norm_operation(call, x.dtype)
    if operation is not None:
        scale = weight.value if weight else call.graph.constant(np.ones(shape), x.dtype)
        return call.op(operation, _vectors(call, x), scale, axis=-len(shape), epsilon=least)
    wide = call.cast(x.value, x.dtype, torch.float32)
    over_root = _over_root_mean_square(
        call, wide, len(shape), least, wide_scale=x.dtype == torch.float32 and weight is not None
    )
    unit = call.cast(over_root, torch.float32, x.dtype)
    return call.op("Mul", unit, weight.value) if weight else unit


@emits(unit_length)
def _unit_length(call: Call, x: Operand, eps: float, *, length: float) -> Value:
    """Return x / sqrt(mean(x ** 2) + eps / K) / sqrt(K) * length, in float32."""
    width = x.static(-1)
    wide = call.cast(x.value, x.dtype, torch.float32)
    scale = call.graph.constant(np.full(width, width**-0.5 * length), torch.float32)
    operation = _norm_operation(call, torch.float32)
    if operation is not None:
        return call.op(operation, wide, scale, axis=-1, epsilon=eps / width)
    return call.op("Mul", _over_root_mean_square(call, wide, 1, eps / width, wide_scale=True), scale)


def _vectors(call: Call, x: Operand) -> Value:
    """The vectors that a norm reads. Those of heads are reshaped from B T HK, if their norm may be moved into attention, which reads it."""
    if not call.graph.target.norms_in_attention or x.ndim != 4 or x.dims[2][0] != x.dims[2][1]:
        return x.value
    joined = call.graph.reshape(x.value, [*x.dims[:2], x.static(2) * x.static(3)])
    vectors = call.graph.reshape(joined, x.dims, again=True)
    vectors.dtype, vectors.dims = x.value.dtype, x.value.dims
    return vectors


def _norm_operation(call: Call, dtype: torch.dtype) -> str | None:
    """The operation of the target that is an RMS norm; None if it has none."""
    return next((name for name in RMS_NORMS if call.graph.target.takes(name, dtype)), None)


def _over_root_mean_square(call: Call, x: Value, axes: int, eps: float, *, wide_scale: bool) -> Value:
    """Return float32 x / sqrt(mean(x ** 2) + eps) over the last axes, in operations that ONNX Runtime fuses.

    With ``wide_scale``, a float32 scale follows.
    """
    square = call.op("Pow", x, call.graph.constant(2.0, torch.float32))
    mean = call.op("ReduceMean", square, call.graph.ints(*range(-axes, 0)), keepdims=1)
    root = call.op("Sqrt", call.op("Add", mean, call.graph.constant(eps, torch.float32)))
    if wide_scale and _is_cast_bfloat16(x):
        return call.op("Mul", x, call.op("Reciprocal", root))
    return call.op("Div", x, root)


def _is_cast_bfloat16(value: Value) -> bool:
    """Whether a value is bfloat16 cast to float32.

    ONNX Runtime fuses such a norm into one that reads bfloat16, and the CUDA provider has none with a float32 scale.
    """
    cast = value.node.inputs[0] if value.node is not None and value.node.op == "Cast" else None
    return cast is not None and cast.dtype == torch.bfloat16


@emits(bias_gelu)
def _bias_gelu(call: Call, x: Operand, bias: Operand, *, operation: str) -> Value:
    result: Value = call.op(operation, x.value, bias.value, domain=CONTRIB)
    return result


@emits(skip_norm)
def _skip_norm(
    call: Call,
    x: Operand,
    branch: Operand,
    weight: Operand,
    bias: Operand | None,
    *,
    eps: float,
    operation: str,
) -> tuple[Value, Value]:
    """Return the norm of the sum, and the sum."""
    inputs = [x.value, branch.value, weight.value, *([bias.value] if bias else [])]
    normed, _, _, total = call.op(operation, *inputs, outputs=4, omitted=(1, 2), domain=CONTRIB, epsilon=eps)
    return normed, total


@emits(F.normalize)
def _normalize(
    call: Call, x: Operand, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: None = None
) -> Value:
    """Return x divided by its norm, or by ``eps`` if the norm is smaller."""
    if p != 2.0:
        raise NotImplementedError("The norm must be Euclidean (p=2): for others divide by torch.sum")
    length = call.op("ReduceL2", x.value, call.graph.ints(dim % x.ndim), keepdims=1)
    return call.op("Div", x.value, call.op("Max", length, call.graph.constant(eps, x.dtype)))


@emits(F.scaled_dot_product_attention)
def _attention(
    call: Call,
    query: Operand,
    key: Operand,
    value: Operand,
    attn_mask: Operand | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    """Return softmax(scale * query @ key^T + bias) @ value; query heads with common keys are rows of one product."""
    if dropout_p or is_causal or query.ndim != 4 or (attn_mask is not None and attn_mask.dtype == torch.bool):
        raise NotImplementedError(
            "Inputs must be B H T K with an additive mask and no dropout: use zoo.functional.attention"
        )
    scale = query.static(3) ** -0.5 if scale is None else scale
    graph, (batch, heads, length, _), past = call.graph, query.dims, key.dims[2]
    scaled = query.value if scale == 1.0 else call.op("Mul", query.value, graph.constant(scale, query.dtype))
    if enable_gqa:
        scaled = graph.reshape(scaled, [batch, key.dims[1], -1, query.dims[3]])  # B G (H/G T) K
    scores = call.op("MatMul", scaled, call.op("Transpose", key.value, perm=[0, 1, 3, 2]))
    if enable_gqa:
        scores = graph.reshape(scores, [batch, heads, length, past])  # B H T S
    if attn_mask is not None:
        scores = call.op("Add", scores, attn_mask.value)
    varies = any(small != large for small, large in (length, past))
    if graph.target.unfused_softmax and varies and attn_mask is None:
        weights = _unfused_softmax(call, scores)
    else:
        weights = call.op("Softmax", scores, axis=-1)
    if enable_gqa:
        weights = graph.reshape(weights, [batch, key.dims[1], -1, past])
    mixed = call.op("MatMul", weights, value.value)
    return graph.reshape(mixed, [batch, heads, length, value.dims[3]]) if enable_gqa else mixed


def _unfused_softmax(call: Call, scores: Value) -> Value:
    """Return the softmax over the last axis, computed in a rank of its own.

    OpenVINO fuses two products and the softmax between them, and computes them wrongly once it has computed one token alone.
    """
    axis = call.graph.ints(0)
    weights: Value = call.op("Squeeze", call.op("Softmax", call.op("Unsqueeze", scores, axis), axis=-1), axis)
    return weights
