"""A tensor in a file, whatever the format of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from zoo.weights.blocks import Blocks, Quantized
from zoo.weights.source import WeightError

FLOATS = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
"""The types that weights come in, by the names that safetensors has for them."""

_QUANTIZED = ("F8", "F4", "I8", "U8", "I4", "U4")


class Stored(Protocol):
    """A tensor of a file: its name, its type as the format calls it, and its shape."""

    @property
    def path(self) -> Path: ...

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> torch.dtype | None:
        """The floating-point type of what ``read`` gives, or None where weights do not come in its kind."""
        ...

    @property
    def place(self) -> tuple[int, int] | None:
        """Offset and number of the bytes in the file that ``read`` gives, or None where it makes values."""
        ...

    def outline(self) -> Tensor:
        """A tensor on the meta device that is laid out as the bytes at ``place`` are."""
        ...

    def read(self) -> Tensor:
        """The tensor, sharing memory with no other.

        Raises :class:`WeightError` where the file has changed, or the values cannot be made.
        """
        ...


@dataclass(frozen=True)
class StoredCodes:
    """The codes of a stored matrix: the layout of its blocks, its number of rows, and the rows from one to another."""

    blocks: Blocks
    count: int
    rows: Callable[[int, int], Quantized]


@runtime_checkable
class Packed(Protocol):
    """A tensor that is stored in few bits.

    ``format`` names the quantized format, or is None where the tensor is not quantized after all; ``codes`` gives the
    matrix as it is stored, or None where only its values can be computed.
    """

    @property
    def format(self) -> str | None: ...

    def codes(self) -> StoredCodes | None: ...


def kind_fault(kind: str) -> str:
    """What is wrong with a kind that weights do not come in."""
    fault = f"is of {kind}, and weights come in {', '.join(list(FLOATS)[:-1])} or {list(FLOATS)[-1]}"
    if kind.startswith(_QUANTIZED):
        return f"{fault}: quantized checkpoints are read with the quantization_config of their config.json; give their directory"
    return fault


def read_bytes(path: Path, name: str, place: tuple[int, int]) -> Tensor:
    """The bytes at an offset, and so many, of the file that a tensor is in.

    They are read, not mapped: where a file becomes shorter meanwhile, mapped pages end the process without a word.  Raises
    :class:`WeightError` naming the tensor.
    """
    offset, nbytes = place
    values = torch.empty(nbytes, dtype=torch.uint8)
    left = values.numpy().data
    try:
        with path.open("rb", buffering=0) as file:
            file.seek(offset)
            while left:
                count = file.readinto(left)
                if not count:
                    raise WeightError(f"{path}: {name} cannot be read: the file has become shorter")
                left = left[count:]
    except OSError as error:
        raise WeightError(f"{path}: {name} cannot be read: {error.strerror}") from None
    return values


def read_pieces(
    path: Path, name: str, dtype: torch.dtype, place: tuple[int, int], step: int
) -> Iterator[Tensor]:
    """The values at a place in a file, so many at a time, flat.  Raises as :func:`read_bytes`."""
    offset, nbytes = place
    for start in range(0, nbytes, step * dtype.itemsize):
        length = min(step * dtype.itemsize, nbytes - start)
        yield read_bytes(path, name, (offset + start, length)).view(dtype)
