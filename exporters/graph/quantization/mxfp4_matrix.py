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
        count, rows = self.blocks.count(self.width), self.rows * len(self.names)
        codes = apart(tensors[0].view(-1, self.width, rows // 2)).mT  # E N K
        scales = tensors[1].view(self.scale_dtype).view(-1, count)
        zeros = torch.zeros(scales.shape, dtype=torch.uint8)
        quantized = Quantized(codes.reshape(len(scales), count, -1), scales, zeros)
        values = self.blocks.restore(quantized, self.width).view(-1, len(self.names), self.width)
        return values.transpose(0, 1).flatten()
