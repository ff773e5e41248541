"""What is done with weight matrices: products, and looking up rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch.nn.functional as F

from exporters.emitters.registry import Call, Operand, emits
from exporters.fusing.functions import joined_linear
from exporters.graph import Parameter, Value
from exporters.quantization.blocks import Blocks
from exporters.quantization.products import quantized_product, quantized_rows
from exporters.quantization.scheme import is_table


@emits(F.linear)
def _linear(call: Call, x: Operand, weight: Operand, bias: Operand | None = None) -> Value:
    return product(call, x, weight.value, bias.value if bias else None)


@emits(joined_linear)
def _joined_linear(
    call: Call, x: Operand, weights: Sequence[Operand], biases: Sequence[Operand] = ()
) -> Value:
    weight, bias = (_joined(call, parts) if parts else None for parts in (weights, biases))
    assert weight is not None
    return product(call, x, weight, bias)


def _joined(call: Call, parts: Sequence[Operand]) -> Value:
    """Weights one below the other, named after all modules that they are of: attention.query_key_value.weight."""
    names = [part.value.name for part in parts]
    leaves = "_".join(name.split(".")[-2] for name in names)
    path = [*call.node.meta["path"].split("."), leaves, names[0].split(".")[-1]]
    return call.graph.joined(".".join(path), [part.value for part in parts])


@emits(F.embedding)
def _embedding(call: Call, ids: Operand, weight: Operand, **options: Any) -> Value:
    found = quantized(call, weight.value)
    if found is not None and is_table(found[0].content.names):
        return quantized_rows(call, ids.value, *found)
    return call.op("Gather", weight.value, ids.value, axis=0)


def quantized(call: Call, weight: Value) -> tuple[Parameter, Blocks] | None:
    """A weight of the model that is to be stored in few bits, and how; else None."""
    declared, quantization = call.graph.declared(weight), call.graph.quantization
    if declared is None or quantization is None:
        return None
    blocks = quantization.of(declared.content.names, declared.shape)
    return None if blocks is None else (declared, blocks)


def product(call: Call, x: Operand, weight: Value, bias: Value | None) -> Value:
    """x @ weight^T + bias as one Gemm on rows, so that weights keep the layout that they are stored in.

    Where the precision has it in few bits, another product reads it.
    """
    if (found := quantized(call, weight)) is not None:
        return quantized_product(call, x, found[0], bias, found[1])
    rows = x.value if x.ndim == 2 else call.graph.reshape(x.value, [-1, x.static(-1)])
    result = call.op("Gemm", rows, weight, *([bias] if bias else []), transB=1)
    return result if x.ndim == 2 else call.graph.reshape(result, call.result.dims)
