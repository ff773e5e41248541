"""The matrices of experts as 4-bit floats with exponents, in the layout of com.microsoft's QMoE on CUDA.

Shapes: experts E, rows N of an expert's matrix (of gate and up by turns, where there are two), width K, exponents of a row B. Source:
ONNX Runtime 1.31, ``docs/contrib_ops/cuda/moe_qmoe.md`` section 6.5 and ``pack_fp4_weights_for_cuda_moe_gemm``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from exporters.graph.quantization.interleaved import InterleavedMatrix
from zoo.weights.blocks import Quantized
from zoo.weights.float4 import apart, in_pairs


@dataclass(frozen=True)
class Mxfp4Matrix(InterleavedMatrix):
    """Codes E K N/2, two rows of a column in a byte, the first in the lower bits; exponents E N B."""

    @property
    def scale_dtype(self) -> torch.dtype:
        return self.blocks.stored

    def _tensors(self, part: Quantized) -> tuple[Tensor, ...]:
        codes = in_pairs(part.codes.flatten(1).t())  # K N/2 of one expert
        return codes.reshape(-1).contiguous(), part.scales.reshape(-1).contiguous()

    def restored(self, tensors: Sequence[Tensor]) -> Tensor:
        blocks, count = self.blocks.count(self.width), len(self.names)
        packed = tensors[0].view(-1, self.width, self.rows * count // 2)
        exponents = tensors[1].view(self.scale_dtype).view(len(packed), -1, blocks)
        values = torch.empty(count, len(packed), self.rows, self.width)
        for expert, (pairs, scales) in enumerate(zip(packed, exponents, strict=True)):
            codes = apart(pairs).t().reshape(len(scales), blocks, -1)  # N B S
            quantized = Quantized(codes, scales, torch.zeros(scales.shape, dtype=torch.uint8))
            rows = self.blocks.restore(quantized, self.width).view(self.rows, count, self.width)
            values[:, expert] = rows.transpose(0, 1)
        return values.flatten()
