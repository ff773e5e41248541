"""A tensor in a file, whatever the format of the file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

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
        """Offset and number of the bytes in the file that ``read`` gives a view of, or None where it makes values."""
        ...

    def read(self) -> Tensor:
        """The tensor, sharing memory with no other.

        Raises :class:`WeightError` where the file has changed, or the values cannot be made.
        """
        ...


def kind_fault(kind: str) -> str:
    """What is wrong with a kind that weights do not come in."""
    fault = f"is of {kind}, and weights come in {', '.join(list(FLOATS)[:-1])} or {list(FLOATS)[-1]}"
    if kind.startswith(_QUANTIZED):
        return f"{fault}: quantized checkpoints are not read; take the one in BF16 or F16"
    return fault


def mapped(path: Path, name: str, dtype: torch.dtype, shape: Sequence[int], place: tuple[int, int]) -> Tensor:
    """A tensor on mapped pages of a file: nothing is copied until someone writes to it.

    Every call maps anew, so that tensors share no memory and a dropped one gives back its pages; the file must keep its
    contents meanwhile.  ``place`` is offset and number of the tensor's bytes.  Raises :class:`WeightError` naming the
    tensor when the file has become shorter.
    """
    offset, nbytes = place
    try:
        pages = torch.from_file(str(path), shared=False, size=offset + nbytes, dtype=torch.uint8)
    except RuntimeError as error:
        raise WeightError(f"{path}: {name} cannot be read: {error}") from None
    values = pages[offset:]
    if offset % dtype.itemsize:  # no view of unaligned values
        values = values.clone()
    return values.view(dtype).view(tuple(shape))
