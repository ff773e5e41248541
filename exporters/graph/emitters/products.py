"""The operations that read quantized matrices: products, and lookups of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from exporters.graph.content import INT4, UINT4
from exporters.graph.dtypes import DTYPES
from exporters.graph.emitters.registry import Call, Operand
from exporters.graph.emitters.static_products import static_product
from exporters.graph.quantization.matrix import Layout, QuantizedMatrix
from exporters.graph.quantization.scheme import is_table
from exporters.graph.values import Parameter, Value
from exporters.target.targets import CONTRIB
from zoo.weights.blocks import Blocks

ACCURACY_LEVEL = 4
"""MatMulNBits rounds its inputs to 8 bits by block on the CPU: the levels without rounding are slower than float32."""

CARRIED_LEVEL = 1
"""The level of products whose 4-bit codes come from the checkpoint: inputs stay in float32, so that nothing is lost.

For one token, a product takes 1.8 times as long as with rounded inputs at 576 columns, and 2.8 to 4.6 times at 2,048; for 256
tokens less. With 8-bit weights it would take 25 to 200 times as long for one token, so their inputs are rounded.
"""


@dataclass(frozen=True)
class _Tensors:
    """The tensors of a quantized matrix: values, scales and zero points in the dtype of the product, and the offset that a
    block with a minimum adds to its values (``added``: N B, or B N in columns)."""

    values: Value
    scales: Value
    zeros: Value | None
    added: Value | None

    @property
    def operands(self) -> list[Value]:
        """The weight inputs of a product: values, scales, and zero points if it has them."""
        return [self.values, self.scales, *([] if self.zeros is None else [self.zeros])]

    def alias_per_use(self, call: Call) -> _Tensors:
        """The same tensors under names that no other operation reads."""
        alias = call.graph.alias_per_use
        zeros = None if self.zeros is None else alias(self.zeros)
        return replace(self, values=alias(self.values), scales=alias(self.scales), zeros=zeros)


def quantized_product(call: Call, x: Operand, weight: Parameter, bias: Value | None, blocks: Blocks) -> Value:
    """x @ weight^T + bias for a quantized weight."""
    if blocks.size is None and call.graph.target.takes("MatMulInteger", torch.float32):
        assert call.graph.quantization is not None
        if (bits := call.graph.quantization.input_bits(weight.content.names)) is not None:
            return static_product(call, x, weight, bias, blocks, bits)
        return _dynamic(call, x, weight, bias, blocks)
    if call.graph.target.takes("MatMulNBits", x.dtype):
        return _in_blocks(call, x, weight, bias, blocks)
    return _dequantized(call, x, weight, bias, blocks)


def quantized_rows(call: Call, ids: Operand, weight: Parameter, blocks: Blocks) -> Value:
    """Look up rows of a quantized table by id."""
    _, width = weight.shape
    names, dtype = weight.content.names, weight.dtype
    if blocks.size is None and not call.graph.target.takes("MatMulInteger", torch.float32):
        return call.op("Gather", _whole(call, weight, blocks, "rows", dtype), ids.value, axis=0)
    if blocks.size is None:
        tensors = _tensors(call, weight, QuantizedMatrix(names, width, blocks, "rows", torch.float32))
        codes = call.cast(call.op("Gather", tensors.values, ids.value, axis=0), torch.int8, torch.float32)
        scale = call.op(
            "Unsqueeze", call.op("Gather", tensors.scales, ids.value, axis=0), call.graph.ints(-1)
        )
        return call.cast(call.op("Mul", codes, scale), torch.float32, dtype)
    if call.graph.target.takes("GatherBlockQuantized", dtype):
        return _looked_up(call, ids, weight, blocks)
    return _columns(call, ids, weight, blocks)


def _looked_up(call: Call, ids: Operand, weight: Parameter, blocks: Blocks) -> Value:
    """Look up rows of a table in blocks, in one operation."""
    assert blocks.size is not None
    rows, width = weight.shape
    matrix = QuantizedMatrix(weight.content.names, width, blocks, "blocks", weight.dtype)
    tensors = _tensors(call, weight, matrix)
    padded = blocks.count(width) * blocks.size
    data = call.graph.parameter(f"{weight.name}.rows", (rows, padded * blocks.bits // 8), torch.uint8, matrix)
    taken = call.op("GatherBlockQuantized", data, ids.value, *tensors.operands[1:], domain=CONTRIB, bits=blocks.bits,
                    block_size=blocks.size, gather_axis=0, quantize_axis=1)  # fmt: skip
    if tensors.added is not None:
        added = call.op("Gather", tensors.added, ids.value, axis=0)
        taken = _add_minima(call, taken, added, ids, blocks, width)
    return _cut(call, taken, blocks, width)


def _add_minima(call: Call, rows: Value, added: Value, ids: Operand, blocks: Blocks, width: int) -> Value:
    """Add each block's offset, B T K/S, to the values of table rows, B T K."""
    ints, kept = call.graph.ints, [0] * ids.ndim
    apart = call.op("Reshape", rows, ints(*kept, blocks.count(width), blocks.size_in(width)))
    whole = call.op("Add", apart, call.op("Unsqueeze", added, ints(-1)))
    result: Value = call.op("Reshape", whole, ints(*kept, -1))
    return result


def _padded(call: Call, x: Value, ndim: int, blocks: Blocks, width: int) -> Value:
    """Pad the last axis with zeros, up to a whole number of blocks."""
    missing = blocks.count(width) * blocks.size_in(width) - width
    if not missing:
        return x
    padded: Value = call.op("Pad", x, call.graph.ints(*[0] * (2 * ndim - 1), missing))
    return padded


def _cut(call: Call, rows: Value, blocks: Blocks, width: int) -> Value:
    """Rows without the padding of their last block."""
    if blocks.count(width) * blocks.size_in(width) == width:
        return rows
    ints = call.graph.ints
    result: Value = call.op("Slice", rows, ints(0), ints(width), ints(-1))
    return result


def _columns(call: Call, ids: Operand, weight: Parameter, blocks: Blocks) -> Value:
    """Look up rows of a table stored transposed for the output head, K V, in standard operations."""
    width, turned = weight.shape[1], [*range(1, ids.ndim + 1), 0]
    matrix = QuantizedMatrix(weight.content.names, width, blocks, "columns", weight.dtype)
    tensors = _tensors(call, weight, matrix).alias_per_use(call)
    ints, kept = call.graph.ints, [0] * ids.ndim

    def rows_of(part: Value, *, codes: bool = False) -> Value:
        """The columns with these ids, as rows; codes become floats."""
        taken = call.op("Gather", part, ids.value, axis=1)
        taken = call.op("Cast", taken, to=int(DTYPES[weight.dtype])) if codes else taken
        rows: Value = call.op("Transpose", taken, perm=turned)
        return rows

    def per_block(part: Value, *, codes: bool = False) -> Value:
        """One number per block, broadcast over its values: B T K/S 1."""
        numbers: Value = call.op("Unsqueeze", rows_of(part, codes=codes), ints(-1))
        return numbers

    # DequantizeLinear would do the same, but OpenVINO takes it only if every size is known.
    codes = _padded(call, rows_of(tensors.values, codes=True), ids.ndim + 1, blocks, width)
    codes = call.op("Reshape", codes, ints(*kept, blocks.count(width), blocks.size_in(width)))
    if tensors.zeros is not None:
        codes = call.op("Sub", codes, per_block(tensors.zeros, codes=True))
    whole = call.op("Mul", codes, per_block(tensors.scales))
    if tensors.added is not None:
        whole = call.op("Add", whole, per_block(tensors.added))
    return _cut(call, call.op("Reshape", whole, ints(*kept, -1)), blocks, width)


def _dynamic(call: Call, x: Operand, weight: Parameter, bias: Value | None, blocks: Blocks) -> Value:
    """An integer product with dynamically rounded inputs, in standard operations that ONNX Runtime fuses."""
    names, (_, width) = weight.content.names, weight.shape
    layout: Layout = "rows" if is_table(names) else "columns"  # an embedding looks up rows of the same table
    tensors = _tensors(call, weight, QuantizedMatrix(names, width, blocks, layout, torch.float32))
    if layout == "rows":
        values = call.op("Transpose", tensors.values, perm=[1, 0])
    else:
        values = call.graph.alias_per_use(tensors.values)
    floats = call.cast(x.value, x.dtype, torch.float32)
    codes, scale, zero = call.op("DynamicQuantizeLinear", floats, outputs=3)
    product = call.cast(call.op("MatMulInteger", codes, values, zero), torch.int32, torch.float32)
    result = call.op("Mul", product, call.op("Mul", scale, tensors.scales))
    if bias is not None:
        result = call.op("Add", result, call.cast(bias, x.dtype, torch.float32))
    return call.cast(result, torch.float32, x.dtype)


def _in_blocks(call: Call, x: Operand, weight: Parameter, bias: Value | None, blocks: Blocks) -> Value:
    names, (rows, width) = weight.content.names, weight.shape
    tensors = _tensors(call, weight, QuantizedMatrix(names, width, blocks, "blocks", x.dtype))
    takes = call.graph.target.block_products
    inputs: list[Value | None] = [x.value, *tensors.operands]
    adds_bias = bias is not None and "bias" in takes
    if adds_bias:
        inputs += [None] * (5 - len(inputs)) + [bias]
    level = CARRIED_LEVEL if blocks.bits == 4 and _is_carried(call, names) else ACCURACY_LEVEL
    options = {"accuracy_level": level} if "accuracy_level" in takes else {}
    result = call.op("MatMulNBits", *inputs, domain=CONTRIB, K=width, N=rows, bits=blocks.bits,
                     block_size=blocks.size, **options)  # fmt: skip
    if tensors.added is not None:
        result = _with_minima(call, result, x, call.op("Transpose", tensors.added, perm=[1, 0]), blocks)
    return result if bias is None or adds_bias else call.op("Add", result, bias)


def _is_carried(call: Call, names: tuple[str, ...]) -> bool:
    """Whether the codes of weights come from the checkpoint."""
    quantization = call.graph.quantization
    return quantization is not None and names[0] in quantization.own


def _dequantized(call: Call, x: Operand, weight: Parameter, bias: Value | None, blocks: Blocks) -> Value:
    """x times dequantized weights, in standard operations that runtimes fuse."""
    tied = blocks.size is None and is_table(weight.content.names)
    layout: Layout = "rows" if tied else "columns"
    matrix = QuantizedMatrix(weight.content.names, weight.shape[1], blocks, layout, x.dtype)
    tensors = _tensors(call, weight, matrix)
    if layout == "columns":
        tensors = tensors.alias_per_use(call)
    whole = _dequantize(call, tensors, blocks, layout)
    result = call.op("MatMul", x.value, call.op("Transpose", whole, perm=[1, 0]) if tied else whole)
    if tensors.added is not None:
        result = _with_minima(call, result, x, tensors.added, blocks)
    return result if bias is None else call.op("Add", result, bias)


def _with_minima(call: Call, result: Value, x: Operand, added: Value, blocks: Blocks) -> Value:
    """Add the contribution of block minima to a product: the sums of x over blocks times ``added``, B N."""
    width, size = x.static(-1), blocks.size
    assert size is not None
    ints = call.graph.ints
    padded = _padded(call, x.value, x.ndim, blocks, width)
    apart = call.op("Reshape", padded, ints(*[0] * (x.ndim - 1), blocks.count(width), size))
    sums = call.op("ReduceSum", apart, ints(-1), keepdims=0)
    total: Value = call.op("Add", result, call.op("MatMul", sums, added))
    return total


def _whole(call: Call, weight: Parameter, blocks: Blocks, layout: Layout, dtype: torch.dtype) -> Value:
    """Dequantize a weight, in rows or in columns, without block minima."""
    matrix = QuantizedMatrix(weight.content.names, weight.shape[1], blocks, layout, dtype)
    return _dequantize(call, _tensors(call, weight, matrix), blocks, layout)


def _dequantize(call: Call, tensors: _Tensors, blocks: Blocks, layout: Layout) -> Value:
    along = (blocks.size is None) == (
        layout == "columns"
    )  # blocks lie along the values of a row, row scales across
    options = {"axis": int(along)} | ({"block_size": blocks.size} if blocks.size else {})
    whole: Value = call.op("DequantizeLinear", *tensors.operands, **options)
    return whole


def _tensors(call: Call, weight: Parameter, matrix: QuantizedMatrix) -> _Tensors:
    """The tensors of a matrix; half-precision scales and minima are widened, once, on loading."""
    (rows, width), blocks = weight.shape, matrix.blocks
    count, bits = blocks.count(width), blocks.bits
    whole_row = blocks.size is None
    shapes: tuple[tuple[int, ...], ...]
    match matrix.layout:
        case "blocks":
            packed = blocks.size_in(width) * bits // 8
            shapes = (rows, count, packed), (rows, count), (rows, -(-count * bits // 8))
            signed = unsigned = torch.uint8
        case "rows":
            shapes = (rows, width), (rows,) if whole_row else (rows, count), (rows, count)
            signed, unsigned = torch.int8, torch.uint8
        case "columns":
            shapes = (width, rows), (rows,) if whole_row else (count, rows), (count, rows)
            signed, unsigned = (torch.int8, torch.uint8) if bits == 8 else (INT4, UINT4)
    kind = signed if matrix.centred else unsigned

    def part(index: int, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> Value:
        return call.graph.parameter(name, shape, dtype, matrix, index)

    stored = matrix.scale_dtype
    codes = part(0, f"{weight.name}.{matrix.layout}", shapes[0], kind)
    scale = part(1, f"{weight.name}.scale", shapes[1], stored)
    wide = call.cast(scale, stored, matrix.dtype)
    if blocks.has_zeros:
        return _Tensors(codes, wide, part(2, f"{weight.name}.zero_point", shapes[2], kind), None)
    if blocks.base is None:
        return _Tensors(codes, wide, None, None)
    minimum = part(2, f"{weight.name}.minimum", shapes[1], stored)
    lift = call.op("Mul", call.cast(scale, stored, torch.float32),
                   call.graph.constant(float(blocks.middle - blocks.base), torch.float32))  # fmt: skip
    added = call.op("Add", call.cast(minimum, stored, torch.float32), lift)
    return _Tensors(codes, wide, None, call.cast(added, torch.float32, matrix.dtype))
