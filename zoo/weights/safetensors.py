"""Reading safetensors files.

The format: 8 bytes with the length of a JSON header, the header, and the tensors without gaps
(https://github.com/huggingface/safetensors#format).
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from specs.base.suggest import suggestion
from zoo.files.json_values import parse_object
from zoo.files.reading import COPY_AGAIN, open_regular
from zoo.weights.source import WeightError
from zoo.weights.stored import FLOATS, FileTensor, read_bytes

_LONGEST_HEADER = 100_000_000  # bytes, as in the format's own library
_SIZES = {"BOOL": 1, "U8": 1, "I8": 1, "U16": 2, "I16": 2, "U32": 4, "I32": 4, "U64": 8, "I64": 8, "C64": 8}
_SIZES |= {"F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "F8_E4M3FNUZ": 1, "F8_E5M2FNUZ": 1}
_SIZES |= {name: dtype.itemsize for name, dtype in FLOATS.items()}


@dataclass(frozen=True)
class SafeTensor(FileTensor):
    """A tensor of a safetensors file: its bytes are ``nbytes`` from ``offset`` on."""

    offset: int
    nbytes: int

    @property
    def extent(self) -> tuple[int, int]:
        return self.offset, self.nbytes

    def outline(self) -> Tensor:
        return torch.empty(self.shape, dtype=self.dtype, device="meta")

    def read(self) -> Tensor:
        assert self.dtype is not None
        return read_bytes(self.path, self.name, self.extent).view(self.dtype).view(self.shape)


def begins_safetensors(start: bytes) -> bool:
    """Whether a file begins like a safetensors file: with a length and a JSON object."""
    return start[8:9] == b"{" and int.from_bytes(start[:8], "little") <= _LONGEST_HEADER


def read_safetensors(path: Path) -> dict[str, SafeTensor]:
    """The tensors of a .safetensors file by name. Raises :class:`WeightError` for a truncated file or invalid header."""
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size < 8:
                raise WeightError(
                    f"{path} is truncated or not a safetensors file: it has {size} bytes{COPY_AGAIN}"
                )
            start = file.read(8)
            length = int.from_bytes(start, "little")
            if length > min(size - 8, _LONGEST_HEADER):
                raise WeightError(
                    f"{path} is truncated or not a safetensors file: "
                    f"its header should have {length:,} bytes, and {size - 8:,} follow{COPY_AGAIN}"
                )
            header = parse_object(file.read(length), f"{path}: the header", WeightError)
    except OSError as error:
        raise WeightError(f"{path} cannot be read: {error.strerror}") from None
    header.pop("__metadata__", None)
    tensors = {name: _stored(path, name, entry, 8 + length) for name, entry in header.items()}
    _check_layout(path, tensors, 8 + length, size)
    return tensors


def _stored(path: Path, name: str, entry: Any, start: int) -> SafeTensor:
    match entry:
        case {"dtype": str(kind), "shape": list(shape), "data_offsets": [int(begin), int(end)]} if all(
            type(length) is int and length >= 0 for length in shape
        ):
            pass
        case _:
            raise WeightError(f"{path}: the header has no dtype, shape and data_offsets for {name}")
    if kind not in _SIZES:
        raise WeightError(f"{path}: {name} has unknown dtype {kind}\n  {suggestion(kind, _SIZES)}")
    if end - begin != math.prod(shape) * _SIZES[kind]:
        shown = " x ".join(map(str, shape))
        raise WeightError(
            f"{path}: {name} is {shown} of {kind}, but its header entry has {end - begin:,} bytes"
        )
    return SafeTensor(path, name, kind, tuple(shape), start + begin, end - begin)


def _check_layout(path: Path, tensors: dict[str, SafeTensor], start: int, size: int) -> None:
    """Check that the tensors lie end to end from the header to the end of the file."""
    end = start
    for stored in sorted(tensors.values(), key=lambda stored: (stored.offset, stored.nbytes)):
        if stored.offset != end:
            raise WeightError(f"{path}: {stored.name} does not start where the tensor before it ends")
        end += stored.nbytes
    if end > size:
        raise WeightError(
            f"{path} is truncated: its header declares {end:,} bytes, and it has {size:,}{COPY_AGAIN}"
        )
    if end < size:
        raise WeightError(f"{path} has {size - end:,} bytes that its header does not list")
