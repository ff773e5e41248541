"""The gate and up matrices of experts as one tensor with interleaved rows, the layout of com.microsoft's MoE.

Shapes: experts E, rows of an expert's matrix H, width D; stored E (2 H) D, part by part if experts are cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from exporters.graph.quantization.matrix import QuantizedMatrix
from zoo.weights.blocks import Quantized
from zoo.weights.source import WeightSource


@dataclass(frozen=True)
class InterleavedWeights:
    """Weights of the model, E H D each (or E H: ``width`` 1), with interleaved rows, in one dtype.

    Every expert is cut into ``parts`` along the rows or the columns of its matrix; the first parts of all experts precede
    the second parts.
    """

    names: tuple[str, ...]
    rows: int
    width: int
    dtype: torch.dtype
    parts: int = 1
    axis: int = 0

    def pieces(self, source: WeightSource) -> Iterator[tuple[Tensor, ...]]:
        size = self.rows * self.width
        for part in range(self.parts):
            for experts in zip(*(groups(source.pieces(name), size) for name in self.names), strict=True):
                cut = [
                    weight.view(self.rows, self.width).chunk(self.parts, self.axis)[part]
                    for weight in experts
                ]
                yield (torch.stack(cut, 1).flatten().to(self.dtype),)  # H 2 D

    def raw(self, source: WeightSource) -> None:
        """None: no file holds the rows in this order."""

    def restored(self, tensors: Sequence[Tensor]) -> Tensor:
        sizes = [self.rows, self.width]
        sizes[self.axis] //= self.parts
        values = tensors[0].view(self.dtype).to(torch.float32)
        stored = values.view(self.parts, -1, sizes[0], len(self.names), sizes[1])  # parts E H 2 D
        return stored.permute(3, 1, *((0, 2, 4) if self.axis == 0 else (2, 0, 4))).flatten()


@dataclass(frozen=True)
class InterleavedMatrix(QuantizedMatrix):
    """Quantized matrices, E H D each, with interleaved rows; ``rows`` is H."""

    rows: int = 0

    def parts(self, source: WeightSource) -> Iterator[Quantized]:
        for experts in zip(*(self._experts(source, name) for name in self.names), strict=True):
            order = torch.arange(len(experts) * self.rows).view(len(experts), self.rows).t().flatten()
            yield Quantized.joined(experts).rows(order)

    def _experts(self, source: WeightSource, name: str) -> Iterator[Quantized]:
        """Yield the matrix of one expert after another."""
        held: list[Quantized] = []
        for part in self.rounded(source, name):
            held.append(part)
            while sum(len(piece.codes) for piece in held) >= self.rows:
                whole = Quantized.joined(held)
                index = torch.arange(len(whole.codes))
                yield whole.rows(index[: self.rows])
                held = [whole.rows(index[self.rows :])]

    def restored(self, tensors: Sequence[Tensor]) -> Tensor:
        rows = super().restored(tensors).view(-1, len(self.names), self.width)
        return rows.transpose(0, 1).flatten()


def groups(pieces: Iterable[Tensor], size: int) -> Iterator[Tensor]:
    """Regroup flat pieces into groups of ``size`` values; each value is copied once, however small the pieces are."""
    held, count = list[Tensor](), 0
    for piece in pieces:
        held.append(piece)
        count += piece.numel()
        if count < size:
            continue
        rest = torch.cat(held)
        while rest.numel() >= size:
            yield rest[:size]
            rest = rest[size:]
        held, count = [rest], rest.numel()
