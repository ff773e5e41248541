"""Tensors in GGUF files: plain ones, and quantized ones dequantized to float32 as they are read."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from zoo.weights.blocks import Quantized
from zoo.weights.gguf_blocks import FORMATS
from zoo.weights.gguf_header import GGUFTensor, Header, read_header
from zoo.weights.stored import FLOATS, StoredCodes, StoredTensor, read_bytes

PIECE = 2**22
"""Values dequantized at a time."""


@dataclass(frozen=True)
class GgufTensor:
    """A tensor of a GGUF file."""

    header: Header
    name: str

    @property
    def path(self) -> Path:
        return self.header.path

    @property
    def kind(self) -> str:
        return self._entry.kind

    @property
    def shape(self) -> tuple[int, ...]:
        return self._entry.shape

    @property
    def dtype(self) -> torch.dtype | None:
        return FLOATS.get(self.kind, torch.float32 if _is_quantized(self.kind) else None)

    @property
    def extent(self) -> tuple[int, int] | None:
        return (self._entry.offset, self._entry.nbytes) if self.kind in FLOATS else None

    @property
    def _entry(self) -> GGUFTensor:
        return self.header.tensors[self.name]

    def outline(self) -> Tensor:
        return torch.empty(self.shape, dtype=self.dtype, device="meta")

    def read(self) -> Tensor:
        if self.extent is not None:
            return read_bytes(self.path, self.name, self.extent).view(FLOATS[self.kind]).view(self.shape)
        return self._made()

    @property
    def format(self) -> str | None:
        return None if self.kind in FLOATS else self.kind

    def codes(self) -> StoredCodes | None:
        form = FORMATS.get(self.kind)
        if form is None or len(self.shape) != 2:
            return None

        def rows(start: int, stop: int) -> Quantized:
            return form.unpack(self._packed_rows(start, stop))

        return StoredCodes(form.blocks, (self.shape[0], 1), rows)

    def _made(self) -> Tensor:
        """The values of a quantized tensor, some rows at a time."""
        import gguf

        *leading, width = self.shape
        rows, step = math.prod(leading), max(1, PIECE // width)
        values = torch.empty(rows, width)
        kind = gguf.GGMLQuantizationType[self.kind]
        for start in range(0, rows, step):
            stop = min(start + step, rows)
            made = gguf.quants.dequantize(self._packed_rows(start, stop).numpy(), kind)
            values[start:stop] = torch.from_numpy(made)
        return values.view(self.shape)

    def _packed_rows(self, start: int, stop: int) -> Tensor:
        """The bytes of some rows, N x bytes."""
        rows = math.prod(self.shape[:-1])
        row = self._entry.nbytes // rows if rows else 0
        extent = (self._entry.offset + start * row, (stop - start) * row)
        return read_bytes(self.path, self.name, extent).view(stop - start, row)


def read_gguf(path: Path) -> dict[str, StoredTensor]:
    """The tensors of a GGUF file by name.

    Raises :class:`WeightError` where the library is missing, or the file is truncated or not a GGUF file.
    """
    header = read_header(path)
    return {name: GgufTensor(header, name) for name in header.tensors}


@functools.cache
def _is_quantized(kind: str) -> bool:
    """Whether the library can dequantize a kind."""
    import gguf

    quantization = gguf.GGMLQuantizationType[kind]
    _, nbytes = gguf.GGML_QUANT_SIZES[quantization]
    try:
        gguf.quants.dequantize(np.zeros((1, nbytes), np.uint8), quantization)
    except NotImplementedError:
        return False
    return True
