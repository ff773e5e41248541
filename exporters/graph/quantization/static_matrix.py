"""Quantized matrices whose inputs have static scales, as tensors of the data file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from exporters.graph.quantization.matrix import QuantizedMatrix, whole_rows
from zoo.weights.blocks import Quantized
from zoo.weights.input_scales import InputScales
from zoo.weights.source import WeightSource

INPUT_SCALE, INPUT_ZERO, MULTIPLIERS, REST_SCALE = 2, 3, 4, 4
"""The indices of the tensors after codes and scales; the last is the multipliers of 8-bit inputs or the second scale of
16-bit inputs."""


@dataclass(frozen=True)
class StaticMatrix(QuantizedMatrix):
    """Matrices in columns with one scale per row, and the static scales of their inputs: K values in ``input_bits``."""

    input_bits: int = 8

    def pieces(self, source: WeightSource) -> Iterator[tuple[Tensor, ...]]:
        scales = self._inputs(source)
        last = scales.multipliers if self.input_bits == 8 else torch.tensor([scales.rest_scale])
        for codes_and_scales in super().pieces(source):
            yield (
                *codes_and_scales,
                torch.tensor([scales.scale]),
                torch.tensor([scales.zero], dtype=torch.uint8),
                last,
            )

    def rounded(self, source: WeightSource, name: str) -> Iterator[Quantized]:
        """The codes of a weight whose columns are divided by the multipliers of the inputs."""
        codes = source.codes(name)
        if codes is not None and codes.multipliers is not None:
            return codes.rows()
        divisors = self._inputs(source).multipliers
        return (
            self.blocks.quantize(rows / divisors, self.dtype)
            for rows in whole_rows(source.pieces(name), self.width)
        )

    def _inputs(self, source: WeightSource) -> InputScales:
        scales = source.input_scales(self.names)
        return InputScales.for_checking(self.width, self.input_bits) if scales is None else scales

    def restored(self, tensors: Sequence[Tensor]) -> Tensor:
        values = super().restored(tensors[:2])
        if self.input_bits == 16:
            return values
        return (values.view(-1, self.width) * tensors[MULTIPLIERS].view(torch.float32)).reshape(-1)
