"""Weights with codes chosen for the inputs of their layers, and the scales of these inputs."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from exporters.graph.quantization.matrix import VALUES, QuantizedMatrix
from exporters.graph.quantization.static_matrix import StaticMatrix
from zoo.weights.blocks import Blocks, Codes, Quantized
from zoo.weights.input_scales import InputScales
from zoo.weights.source import WeightSource


@dataclass(frozen=True)
class Rounding:
    """How to round a matrix: its blocks, and the dtype of their scales.

    ``inputs`` are the bits of the inputs of a product with static scales; ``names`` are then all its weights.
    """

    blocks: Blocks
    dtype: torch.dtype
    inputs: int | None = None
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, matrix: QuantizedMatrix) -> Rounding:
        """As a matrix of the data file has it."""
        if isinstance(matrix, StaticMatrix):
            return cls(matrix.blocks, matrix.dtype, matrix.input_bits, matrix.names)
        return cls(matrix.blocks, matrix.dtype)


class CalibratedWeights(WeightSource):
    """A source with the codes of some of its matrices, which are files in a directory."""

    def __init__(self, source: WeightSource, directory: Path) -> None:
        self.description = source.description
        self._source, self._directory = source, directory
        self._kept: dict[str, tuple[Rounding, Path]] = {}
        self._inputs: dict[tuple[str, ...], InputScales] = {}
        self._count = 0

    def pieces(self, name: str) -> Iterator[Tensor]:
        """The values before rounding."""
        return self._source.pieces(name)

    def raw(self, name: str) -> tuple[Path, int, int] | None:
        return self._source.raw(name)

    def codes(self, name: str) -> Codes | None:
        if name not in self._kept:
            return self._source.codes(name)
        rounding = self._kept[name][0]
        scales = self.input_scales(rounding.names)
        return Codes(
            rounding.blocks, lambda: self._rows(name), None if scales is None else scales.multipliers
        )

    def input_scales(self, names: tuple[str, ...]) -> InputScales | None:
        return self._inputs.get(names)

    def format(self, name: str) -> str | None:
        return self._source.format(name)

    @property
    def calibrated(self) -> list[str]:
        """The matrices that have chosen codes."""
        return [*self._kept]

    def keep_inputs(self, names: tuple[str, ...], scales: InputScales) -> None:
        """Set the static scales of a product's inputs."""
        self._inputs[names] = scales

    def keep(self, name: str, rounding: Rounding, codes: Quantized) -> None:
        """Set the codes of a matrix."""
        path = self._directory / f"{self._count}.safetensors"
        self._count += 1
        save_file({"codes": codes.codes, "scales": codes.scales, "zeros": codes.zeros}, path)
        self._kept[name] = rounding, path

    def without(self, names: Container[str]) -> CalibratedWeights:
        """The same source without the codes of some matrices: these have their original values, or the codes of its source."""
        other = CalibratedWeights(self._source, self._directory)
        other._inputs, other._count = self._inputs, self._count
        other._kept = {name: kept for name, kept in self._kept.items() if name not in names}
        return other

    def restored(self, name: str, width: int) -> Tensor | None:
        """The dequantized codes of a matrix, N K, or None where none were chosen."""
        codes = self.codes(name) if name in self._kept else None
        return None if codes is None else codes.values(width)

    def _rows(self, name: str) -> Iterator[Quantized]:
        with safe_open(self._kept[name][1], "pt") as file:
            codes, scales, zeros = (file.get_slice(part) for part in ("codes", "scales", "zeros"))
            rows, count, size = codes.get_shape()
            step = max(1, VALUES // (count * size))
            for start in range(0, rows, step):
                end = start + step
                yield Quantized(codes[start:end], scales[start:end], zeros[start:end])
