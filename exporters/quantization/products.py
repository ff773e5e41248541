"""The operations that read quantized matrices."""

from __future__ import annotations

import torch

from exporters.content import INT4, UINT4
from exporters.emitters.registry import Call, Operand
from exporters.graph import Parameter, Value
from exporters.quantization.matrix import Layout, QuantizedMatrix
from exporters.quantization.scheme import is_table
from exporters.targets import CONTRIB
from zoo.weights.blocks import Blocks

ACCURACY_LEVEL = 4
"""Inputs of MatMulNBits are rounded to 8 bits by block on processors: the levels that do not are slower than float32."""


def quantized_product(call: Call, x: Operand, weight: Parameter, bias: Value | None, blocks: Blocks) -> Value:
    """x @ weight^T + bias, where the weight is stored in few bits."""
    if blocks.size is None and call.graph.target.takes("MatMulInteger", torch.float32):
        return _dynamic(call, x, weight, bias, blocks)
    if call.graph.target.takes("MatMulNBits", x.dtype):
        return _in_blocks(call, x, weight, bias, blocks)
    return _dequantized(call, x, weight, bias, blocks)


def quantized_rows(call: Call, ids: Value, weight: Parameter, blocks: Blocks) -> Value:
    """The rows of a table with these ids, where the table is stored in few bits."""
    rows, width = weight.shape
    if blocks.size is None and not call.graph.target.takes("MatMulInteger", torch.float32):
        return call.op("Gather", _whole(call, weight, blocks, "rows", weight.dtype), ids, axis=0)
    if blocks.size is None:
        matrix = QuantizedMatrix(weight.content.names, width, blocks, "rows", torch.float32)
        values, scales = _tensors(call, weight, matrix)
        codes = call.cast(call.op("Gather", values, ids, axis=0), torch.int8, torch.float32)
        scale = call.op("Unsqueeze", call.op("Gather", scales, ids, axis=0), call.graph.ints(-1))
        return call.cast(call.op("Mul", codes, scale), torch.float32, weight.dtype)
    if not call.graph.target.takes("GatherBlockQuantized", weight.dtype):
        return _columns(call, ids, weight, blocks)
    matrix = QuantizedMatrix(weight.content.names, width, blocks, "blocks", weight.dtype)
    _, *scales_zeros = _tensors(call, weight, matrix)
    padded = blocks.count(width) * blocks.size
    data = call.graph.parameter(f"{weight.name}.rows", (rows, padded * blocks.bits // 8), torch.uint8, matrix)
    taken = call.op("GatherBlockQuantized", data, ids, *scales_zeros, domain=CONTRIB, bits=blocks.bits,
                    block_size=blocks.size, gather_axis=0, quantize_axis=1)  # fmt: skip
    if padded == width:
        return taken
    ints = call.graph.ints
    return call.op("Slice", taken, ints(0), ints(width), ints(-1))


def _columns(call: Call, ids: Value, weight: Parameter, blocks: Blocks) -> Value:
    """Rows of a table that lies as the product of its head wants it, K V, in standard operations."""
    matrix = QuantizedMatrix(weight.content.names, weight.shape[1], blocks, "columns", weight.dtype)
    taken = [
        call.op("Gather", part, ids, axis=1) for part in _tensors(call, weight, matrix)
    ]  # K B T, K/S B T
    whole = call.op("DequantizeLinear", *taken, axis=0, block_size=blocks.size)
    return call.op("Transpose", whole, perm=[1, 2, 0])  # B T K


def _dynamic(call: Call, x: Operand, weight: Parameter, bias: Value | None, blocks: Blocks) -> Value:
    """Integers times integers, in standard operations that ONNX Runtime makes one of."""
    names, (_, width) = weight.content.names, weight.shape
    layout: Layout = "rows" if is_table(names) else "columns"  # an embedding looks up rows of the same table
    values, scales = _tensors(call, weight, QuantizedMatrix(names, width, blocks, layout, torch.float32))
    if layout == "rows":
        values = call.op("Transpose", values, perm=[1, 0])
    given = call.cast(x.value, x.dtype, torch.float32)
    codes, scale, zero = call.op("DynamicQuantizeLinear", given, outputs=3)
    product = call.cast(call.op("MatMulInteger", codes, values, zero), torch.int32, torch.float32)
    result = call.op("Mul", product, call.op("Mul", scale, scales))
    if bias is not None:
        result = call.op("Add", result, call.cast(bias, x.dtype, torch.float32))
    return call.cast(result, torch.float32, x.dtype)


def _in_blocks(call: Call, x: Operand, weight: Parameter, bias: Value | None, blocks: Blocks) -> Value:
    names, (rows, width) = weight.content.names, weight.shape
    tensors = _tensors(call, weight, QuantizedMatrix(names, width, blocks, "blocks", x.dtype))
    on_processor = call.graph.target.name == "cpu"
    inputs: list[Value | None] = [x.value, *tensors]
    if on_processor and bias is not None:
        inputs += [None] * (5 - len(inputs)) + [bias]
    options = {"accuracy_level": ACCURACY_LEVEL} if on_processor else {}
    result = call.op("MatMulNBits", *inputs, domain=CONTRIB, K=width, N=rows, bits=blocks.bits,
                     block_size=blocks.size, **options)  # fmt: skip
    return result if bias is None or on_processor else call.op("Add", result, bias)


def _dequantized(call: Call, x: Operand, weight: Parameter, bias: Value | None, blocks: Blocks) -> Value:
    """Weights as they were, times x, in standard operations that runtimes make one of."""
    tied = blocks.size is None and is_table(weight.content.names)
    whole = _whole(call, weight, blocks, "rows" if tied else "columns", x.dtype)
    result = call.op("MatMul", x.value, call.op("Transpose", whole, perm=[1, 0]) if tied else whole)
    return result if bias is None else call.op("Add", result, bias)


def _whole(call: Call, weight: Parameter, blocks: Blocks, layout: Layout, dtype: torch.dtype) -> Value:
    """A weight as it was, in rows or in columns."""
    tensors = _tensors(
        call, weight, QuantizedMatrix(weight.content.names, weight.shape[1], blocks, layout, dtype)
    )
    options = {"axis": 0} if blocks.size else {"axis": 0 if layout == "rows" else 1}
    whole: Value = call.op(
        "DequantizeLinear", *tensors, **options, **({"block_size": blocks.size} if blocks.size else {})
    )
    return whole


def _tensors(call: Call, weight: Parameter, matrix: QuantizedMatrix) -> list[Value]:
    """The values, scales and zero points of a matrix."""
    (rows, width), blocks = weight.shape, matrix.blocks
    count, bits = blocks.count(width), blocks.bits
    match matrix.layout:
        case "blocks":
            size = blocks.size_in(width)
            shapes = [(rows, count, size * bits // 8), (rows, count), (rows, -(-count * bits // 8))]
            kinds = [torch.uint8, matrix.dtype, torch.uint8]
        case "rows":
            shapes, kinds = [(rows, width), (rows,)], [torch.int8, matrix.dtype]
        case "columns":
            scales = (rows,) if blocks.size is None else (count, rows)
            kind = torch.int8 if bits == 8 else INT4 if blocks.symmetric else UINT4
            shapes, kinds = [(width, rows), scales, scales], [kind, matrix.dtype, kind]
    names = (weight.name, f"{weight.name}.scale", f"{weight.name}.zero_point")
    parts = list(zip(names, shapes, kinds, strict=False))[: matrix.count]
    return [
        call.graph.parameter(name if part else f"{name}.{matrix.layout}", shape, kind, matrix, part)
        for part, (name, shape, kind) in enumerate(parts)
    ]
