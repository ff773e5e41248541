"""The matrices of experts as inputs of operations: all experts at once, or one expert per step of a loop.

Shapes: experts E, rows of one expert N, width D, rows of a matrix H, blocks of a row B, values of a block S.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from exporters.graph.emitters.linear import low_rank, quantized
from exporters.graph.emitters.registry import Call, Operand
from exporters.graph.quantization.interleaved import InterleavedMatrix
from exporters.graph.quantization.matrix import QuantizedMatrix
from exporters.graph.quantization.mxfp4_matrix import Mxfp4Matrix
from exporters.graph.values import Value
from zoo.weights.blocks import Blocks


@dataclass(frozen=True)
class ExpertWeights:
    """The matrices of all experts, E H D, and their biases, E H."""

    weight: Operand
    bias: Operand | None

    @property
    def name(self) -> str:
        """The path of their module."""
        return self.weight.value.name.rpartition(".")[0]

    @property
    def bias_value(self) -> Value | None:
        """The biases in the graph."""
        return None if self.bias is None else self.bias.value

    def blocks(self, call: Call) -> Blocks | None:
        """The blocks of quantized matrices; None for floats."""
        matrix = quantized(call, self.weight.value)
        return None if matrix is None else matrix[1]


def joint_name(matrices: Sequence[ExpertWeights]) -> str:
    """One name for matrices: ``experts.gate_up`` for ``experts.gate`` and ``experts.up``."""
    outer = matrices[0].name.rpartition(".")[0]
    return f"{outer}.{'_'.join(matrix.name.rpartition('.')[2] for matrix in matrices)}"


def codes(call: Call, matrices: Sequence[ExpertWeights], blocks: Blocks) -> tuple[Value, Value]:
    """Quantized matrices in blocks, the rows of two matrices interleaved: codes E H (bytes), and scales E H B.

    The codes of floats are turned: E D H/2.
    """
    weight = matrices[0].weight
    count, rows, width = weight.info[0].shape
    names = tuple(expert_weights.weight.value.name for expert_weights in matrices)
    name, lines = joint_name(matrices), len(names) * rows
    matrix: QuantizedMatrix
    if blocks.floats:
        matrix = Mxfp4Matrix(names, width, blocks, "blocks", weight.dtype, rows)
    elif len(names) > 1:
        matrix = InterleavedMatrix(names, width, blocks, "blocks", weight.dtype, rows)
    else:
        matrix = QuantizedMatrix(names, width, blocks, "blocks", weight.dtype)
    packed, scales = (count, lines, width * blocks.bits // 8), (count, lines, blocks.count(width))
    if blocks.floats:
        packed = (count, width, lines // 2)
    return (
        call.graph.parameter(f"{name}.blocks", packed, torch.uint8, matrix, 0),
        call.graph.parameter(f"{name}.scale", scales, matrix.scale_dtype, matrix, 1),
    )


def dtype_of(value: Value) -> torch.dtype:
    """The dtype of a weight or of an input of a body."""
    assert value.dtype is not None
    return value.dtype


@dataclass(frozen=True)
class ExpertMatrix:
    """One matrix of every expert: the tensors that a loop scans, and the product with one expert's slice.

    ``adapted``: whether the last two tensors are those of an adapter, D rank and rank H of an expert.
    """

    experts: int
    scanned: Sequence[Value]
    blocks: Blocks | None
    width: int
    dtype: torch.dtype
    biased: bool
    adapted: bool

    @classmethod
    def of(cls, call: Call, matrices: ExpertWeights) -> ExpertMatrix:
        weight, blocks = matrices.weight, matrices.blocks(call)
        values = [weight.value] if blocks is None else [*codes(call, [matrices], blocks)]
        bias = [] if matrices.bias is None else [matrices.bias.value]
        change = [*low_rank(call, weight, weight.dtype)] if weight.value.name in call.graph.adapted else []
        scanned = [*values, *bias, *change]
        width, dtype = weight.static(2), weight.dtype
        return cls(weight.static(0), scanned, blocks, width, dtype, bool(bias), bool(change))

    def product(self, call: Call, x: Value, tensors: Sequence[Value]) -> Value:
        """x @ weight^T + bias, with the change of an adapter: N D -> N H."""
        if self.adapted:
            *tensors, down, up = tensors
            change = call.op("MatMul", call.op("MatMul", x, down), up)
            result: Value = call.op("Add", self._product(call, x, tensors), change)
            return result
        return self._product(call, x, tensors)

    def _product(self, call: Call, x: Value, tensors: Sequence[Value]) -> Value:
        bias = [tensors[-1]] if self.biased else []
        if self.blocks is None:
            return call.op("Gemm", x, tensors[0], *bias, transB=1)
        codes, scale = (
            call.cast(tensors[0], torch.uint8, self.dtype),
            call.cast(tensors[1], dtype_of(tensors[1]), self.dtype),
        )
        scale = call.op("Unsqueeze", scale, call.graph.ints(-1))  # H B 1
        centred = call.op("Sub", codes, call.graph.constant(128.0, self.dtype))
        if self.blocks.bits == 8:
            whole = self._scaled(call, centred, scale, self.blocks)
            return call.op("Gemm", x, whole, *bias, transB=1)
        pairs = call.op("Reshape", x, call.graph.ints(-1, self.width // 2, 2))
        even, odd = (
            call.op("Gather", pairs, call.graph.constant(index, torch.int64), axis=2) for index in (0, 1)
        )
        low, high = (self._scaled(call, half, scale, self.blocks) for half in self._halves(call, centred))
        first = call.op("Gemm", even, low, *bias, transB=1)
        result: Value = call.op("Gemm", odd, high, first, transB=1)
        return result

    def _halves(self, call: Call, pairs: Value) -> tuple[Value, Value]:
        """The two numbers from -8 to 7 in each 16 (high + 8) + (low + 8) - 128: H D/2 -> H D/2 twice.

        Float operations, because runtimes vectorize these but not bit operations.
        """
        sixteen, eight = (call.graph.constant(number, self.dtype) for number in (16.0, 8.0))
        high = call.op("Floor", call.op("Div", pairs, sixteen))
        low = call.op("Sub", call.op("Sub", pairs, call.op("Mul", high, sixteen)), eight)
        return low, high

    def _scaled(self, call: Call, numbers: Value, scale: Value, blocks: Blocks) -> Value:
        """Every block of a row times its scale: H D or H D/2, and H B 1."""
        ints = call.graph.ints
        apart = call.op("Reshape", numbers, ints(0, blocks.count(self.width), -1))  # H B S
        whole: Value = call.op("Reshape", call.op("Mul", apart, scale), ints(0, -1))
        return whole
