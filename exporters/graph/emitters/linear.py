"""Emitters of products with weight matrices, and of embedding lookups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from exporters.graph.emitters.products import quantized_product, quantized_rows
from exporters.graph.emitters.registry import Call, Operand, emits
from exporters.graph.fusing.functions import joined_linear, wide_linear
from exporters.graph.quantization.scheme import is_table
from exporters.graph.values import Parameter, Value
from exporters.target.targets import CONTRIB
from zoo.weights.blocks import Blocks

PART = 2.0**-4
"""The fraction of a product that is computed in float16 if the product itself might overflow."""


@emits(F.linear)
def _linear(call: Call, x: Operand, weight: Operand, bias: Operand | None = None) -> Value:
    return adapted(call, x, product(call, x, weight.value, bias.value if bias else None), [weight])


@emits(joined_linear)
def _joined_linear(
    call: Call, x: Operand, weights: Sequence[Operand], biases: Sequence[Operand] = ()
) -> Value:
    if not _agree(call, weights):
        added: list[Value | None] = [bias.value for bias in biases] or [None] * len(weights)
        products = [product(call, x, weight.value, bias) for weight, bias in zip(weights, added, strict=True)]
        return adapted(call, x, call.op("Concat", *products, axis=-1), weights)
    weight, bias = (_joined(call, parts) if parts else None for parts in (weights, biases))
    assert weight is not None
    return adapted(call, x, product(call, x, weight, bias), weights)


def _agree(call: Call, weights: Sequence[Operand]) -> bool:
    """Whether weights can be stacked into one matrix: all have the same blocks."""
    quantization = call.graph.quantization
    declared = [call.graph.declared(weight.value) for weight in weights]
    return quantization is None or quantization.agree(
        parameter.content.names[0] for parameter in declared if parameter
    )


@emits(wide_linear)
def _wide_linear(call: Call, x: Operand, weight: Operand, bias: Operand | None = None) -> Value:
    """A fraction of the product in float16, scaled up in float32."""
    scaled = product(call, x, weight.value, bias.value if bias else None, part=PART)
    wide = call.cast(scaled, x.dtype, torch.float32)
    if quantized(call, weight.value) is None:
        wide = call.op("Mul", wide, call.graph.constant(1 / PART, torch.float32))
    return adapted(call, x, wide, [weight], torch.float32)


def adapted(
    call: Call, x: Operand, result: Value, weights: Sequence[Operand], dtype: torch.dtype | None = None
) -> Value:
    """The result of a product with stacked weights, changed by an adapter where it may change any of them: result + x down up (LoRA: Hu
    et al., 2021). ``dtype``: that of the result, if not the input's."""
    if not any(weight.value.name in call.graph.adapted for weight in weights):
        return result
    changes = [_low_rank(call, x, weight) for weight in weights]
    change = changes[0] if len(changes) == 1 else call.op("Concat", *changes, axis=-1)
    return call.op("Add", result, change if dtype is None else call.cast(change, x.dtype, dtype))


def _low_rank(call: Call, x: Operand, weight: Operand) -> Value:
    """x down up, of rank 0 without an adapter."""
    down, up = low_rank(call, weight, x.dtype)
    change: Value = call.op("MatMul", call.op("MatMul", x.value, down), up)
    return change


def low_rank(call: Call, weight: Operand, dtype: torch.dtype) -> tuple[Value, Value]:
    """The matrices of an adapter for a weight, or for the weights of stacked experts: columns x rank and rank x rows."""
    name, (*experts, rows, columns) = weight.value.name, weight.info[0].shape
    rank = f"{name.removesuffix('.weight')}.rank"
    return (
        call.graph.adapter(name, "down", (*experts, columns, rank), dtype),
        call.graph.adapter(name, "up", (*experts, rank, rows), dtype),
    )


def _joined(call: Call, parts: Sequence[Operand]) -> Value:
    """Weights stacked along the rows, named after all of their modules: attention.query_key_value.weight."""
    names = [part.value.name for part in parts]
    leaves = "_".join(name.split(".")[-2] for name in names)
    path = [*call.node.meta["path"].split("."), leaves, names[0].split(".")[-1]]
    return call.graph.joined(".".join(path), [part.value for part in parts])


@emits(F.embedding)
def _embedding(call: Call, ids: Operand, weight: Operand, **options: Any) -> Value:
    matrix = quantized(call, weight.value)
    if matrix is not None and is_table(matrix[0].content.names):
        return quantized_rows(call, ids, *matrix)
    stored = _in_half(call, weight.value)
    if stored is not None:
        return call.cast(call.op("Gather", stored, ids.value, axis=0), torch.float16, torch.float32)
    return call.op("Gather", weight.value, ids.value, axis=0)


def _in_half(call: Call, weight: Value) -> Value | None:
    """A float32 model's weight as the data file stores it, if that is float16; otherwise None."""
    declared, quantization = call.graph.declared(weight), call.graph.quantization
    if declared is None or quantization is None or declared.dtype != torch.float32:
        return None
    return (
        call.graph.converted(declared, torch.float16)
        if quantization.in_half(declared.content.names)
        else None
    )


def quantized(call: Call, weight: Value) -> tuple[Parameter, Blocks] | None:
    """The declaration and the blocks of a weight to quantize; None for any other value."""
    declared, quantization = call.graph.declared(weight), call.graph.quantization
    if declared is None or quantization is None:
        return None
    blocks = quantization.of(declared.content.names, declared.shape)
    return None if blocks is None else (declared, blocks)


def product(call: Call, x: Operand, weight: Value, bias: Value | None, part: float = 1.0) -> Value:
    """x @ weight^T + bias as one Gemm on rows, so that weights keep their stored layout.

    Without a bias, a target with FusedMatMul gains nothing from rows: the weights of layers are transposed when the file is
    loaded, and a table, which other operations read untransposed, is transposed by the product.

    Quantized weights go to :func:`quantized_product`; ``part`` scales the product of any other.
    """
    if (matrix := quantized(call, weight)) is not None:
        return quantized_product(call, x, matrix[0], bias, matrix[1])
    if (stored := _in_half(call, weight)) is not None:
        weight = call.cast(stored, torch.float16, torch.float32)  # once, on loading
    if bias is None and part == 1.0 and x.ndim > 2 and call.graph.target.takes("FusedMatMul", x.dtype):
        declared = call.graph.declared(weight)
        if declared is not None and is_table(declared.content.names):
            return call.op("FusedMatMul", x.value, weight, domain=CONTRIB, transB=1)
        return call.op("MatMul", x.value, call.op("Transpose", weight, perm=[1, 0]))
    scale = {} if part == 1.0 else {"alpha": part, "beta": part}
    rows = x.value if x.ndim == 2 else call.graph.reshape(x.value, [-1, x.static(-1)])
    result = call.op("Gemm", rows, weight, *([bias] if bias else []), transB=1, **scale)
    return result if x.ndim == 2 else call.graph.reshape(result, call.result.dims)
