"""Emitter of products with statically scaled inputs: QuantizeLinear and DequantizeLinear around a MatMul (QDQ).

ONNX Runtime fuses each MatMul with two 8-bit inputs into one integer product.
"""

from __future__ import annotations

import torch

from exporters.graph.emitters.registry import Call, Operand
from exporters.graph.quantization.static_matrix import (
    INPUT_SCALE,
    INPUT_ZERO,
    MULTIPLIERS,
    REST_SCALE,
    StaticMatrix,
)
from exporters.graph.values import Parameter, Value
from zoo.weights.blocks import Blocks
from zoo.weights.input_scales import MIDDLE


def static_product(
    call: Call, x: Operand, weight: Parameter, bias: Value | None, blocks: Blocks, bits: int
) -> Value:
    """Return x @ weight^T + bias, with x in 8 or 16 bits."""
    rows, width = weight.shape
    matrix = StaticMatrix(weight.content.names, width, blocks, "columns", torch.float32, bits)

    def part(index: int, name: str, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Value:
        return call.graph.parameter(f"{weight.name}.{name}", shape, dtype, matrix, index)

    def values(name: str) -> Value:
        codes, scales = part(0, name, (width, rows), torch.int8), part(1, "scale", (rows,))
        # Without a zero point, ONNX Runtime fuses no integer product. It names the unsigned copies of tensors after their
        # initializers, so each node needs a separate initializer.
        centre = call.graph.constant([0] * rows, torch.int8, owner=f"{weight.name}.{name}")
        result: Value = call.op("DequantizeLinear", codes, scales, centre, axis=1)
        return result

    scale, zero = part(INPUT_SCALE, "input_scale", ()), part(INPUT_ZERO, "input_zero_point", (), torch.uint8)
    floats = call.cast(x.value, x.dtype, torch.float32)
    if bits == 8:
        floats = call.op("Mul", floats, part(MULTIPLIERS, "input_multipliers", (width,)))
    near = _rounded(call, floats, scale, zero)
    result = call.op("MatMul", near, values("columns"))
    if bits == 16:
        middle = call.graph.constant(MIDDLE, torch.uint8)
        rest = _rounded(call, call.op("Sub", floats, near), part(REST_SCALE, "input_rest_scale", ()), middle)
        result = call.op("Add", result, call.op("MatMul", rest, values("columns_again")))
    if bias is not None:
        result = call.op("Add", result, call.cast(bias, x.dtype, torch.float32))
    return call.cast(result, torch.float32, x.dtype)


def _rounded(call: Call, x: Value, scale: Value, zero: Value) -> Value:
    result: Value = call.op("DequantizeLinear", call.op("QuantizeLinear", x, scale, zero), scale, zero)
    return result
