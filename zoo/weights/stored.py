"""A tensor in a file of any format."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from zoo.files.reading import open_regular
from zoo.weights.blocks import Blocks, Quantized
from zoo.weights.memory_pages import in_own_pages
from zoo.weights.source import WeightError

FLOATS = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
"""The supported dtypes of weights, by their names in safetensors."""

INTEGERS = {
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool
}  # fmt: skip
"""The dtypes of counters and masks beside the weights."""

_QUANTIZED = ("F8", "F4", "I8", "U8", "I4", "U4")


def is_finite(values: Tensor) -> bool:
    """Whether no value is NaN or infinite."""
    return not values.numel() or all(map(math.isfinite, values.aminmax()))  # NaN is its own minimum


def narrowed(values: Tensor, dtype: torch.dtype, name: str) -> Tensor:
    """The values of a tensor, which messages give a ``name``, in a dtype.  Raises :class:`WeightError` where it has no such large values."""
    result = values.to(dtype)
    if result.dtype != values.dtype and not is_finite(result) and is_finite(values):
        raise WeightError(
            f"{name} has values that are too large for {str(dtype).removeprefix('torch.')}\n"
            f"  value: {float(values.abs().max()):.3g}\n  Use float32 or bfloat16."
        )
    return result


class StoredTensor(Protocol):
    """A tensor of a file: its name, the format's name of its type, and its shape."""

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
        """The floating-point dtype of the result of ``read``, or None for an unsupported one."""
        ...

    @property
    def extent(self) -> tuple[int, int] | None:
        """The offset and number of the bytes that ``read`` returns, or None where it computes values."""
        ...

    def outline(self) -> Tensor:
        """A tensor on the meta device with the memory layout of the bytes at ``extent``."""
        ...

    def read(self) -> Tensor:
        """The tensor, in memory of its own.

        Raises :class:`WeightError` where the file has changed, or the values cannot be computed.
        """
        ...


@dataclass(frozen=True)
class FileTensor:
    """A tensor of a file: the path, and its name, type and shape in the file."""

    path: Path
    name: str
    kind: str
    shape: tuple[int, ...]

    @property
    def dtype(self) -> torch.dtype | None:
        return FLOATS.get(self.kind)


@dataclass(frozen=True)
class ComputedTensor(ABC):
    """A tensor of a file's name and type whose values are computed in float32 from a stored ``matrix``."""

    matrix: StoredTensor

    @property
    def path(self) -> Path:
        """The file of the matrix."""
        return self.matrix.path

    @property
    def name(self) -> str:
        """The matrix's name."""
        return self.matrix.name

    @property
    def kind(self) -> str:
        """The format's name of the matrix's type."""
        return self.matrix.kind

    @property
    def shape(self) -> tuple[int, ...]:
        """The matrix's shape."""
        return self.matrix.shape

    @property
    def dtype(self) -> torch.dtype | None:
        """That of the results; None where the matrix has an unsupported one."""
        return self.matrix.dtype and torch.float32

    @property
    def extent(self) -> None:
        """No bytes of the file: the values are computed."""
        return

    def outline(self) -> Tensor:
        """A tensor on the meta device."""
        return torch.empty(self.shape, device="meta")

    @abstractmethod
    def read(self) -> Tensor:
        """The values; raises what reading the matrix raises."""


@dataclass(frozen=True)
class StoredCodes:
    """The codes of a stored matrix: the layout of its blocks, the shape of its tensor with a single value for each row of codes, and
    a reader of ranges of rows.

    The shape of N rows is N 1; where the rows of codes are the columns of stacked experts, it is E 1 N. ``fit_half`` is as in
    :class:`zoo.weights.blocks.Codes`.
    """

    blocks: Blocks
    lines: tuple[int, ...]
    rows: Callable[[int, int], Quantized]
    fit_half: Callable[[], bool] = lambda: True


@runtime_checkable
class Packed(Protocol):
    """A tensor that is stored quantized.

    ``format`` names the quantized format, or is None where the tensor is not quantized after all; ``codes`` returns
    the stored matrix, or None where only its values can be computed.
    """

    @property
    def format(self) -> str | None: ...

    def codes(self) -> StoredCodes | None: ...


def kind_fault(kind: str) -> str:
    """The fault of an unsupported dtype."""
    fault = f"has dtype {kind}; weights must be {', '.join(list(FLOATS)[:-1])} or {list(FLOATS)[-1]}"
    if kind.startswith(_QUANTIZED):
        return f"{fault}; a quantized checkpoint is read by its directory, with the quantization_config in its config.json"
    return fault


def read_bytes(path: Path, name: str, extent: tuple[int, int]) -> Tensor:
    """Return the bytes of a tensor: ``extent`` is their offset in the file and their number. Raises as :func:`read_into`."""
    offset, nbytes = extent
    values = in_own_pages((nbytes,), torch.uint8)
    read_into(values, path, name, offset)
    return values


def read_into(values: Tensor, path: Path, name: str, offset: int) -> None:
    """Fill a contiguous tensor with the bytes of a file from ``offset`` on.

    They are read, not mapped: if the file became shorter meanwhile, mapped pages would kill the process. Raises
    :class:`WeightError` naming the tensor.
    """
    left = values.reshape(-1).view(torch.uint8).numpy().data
    try:
        with open_regular(path, buffering=0) as file:
            file.seek(offset)
            while left:
                count = file.readinto(left)
                if not count:
                    raise WeightError(
                        f"{path}: {name} cannot be read: the file became shorter while it was read"
                    )
                left = left[count:]
    except OSError as error:
        raise WeightError(f"{path}: {name} cannot be read: {error.strerror}") from None


def read_pieces(
    path: Path, name: str, dtype: torch.dtype, extent: tuple[int, int], step: int
) -> Iterator[Tensor]:
    """Yield the values in an extent of a file, in flat pieces. Raises as :func:`read_bytes`."""
    offset, nbytes = extent
    for start in range(0, nbytes, step * dtype.itemsize):
        length = min(step * dtype.itemsize, nbytes - start)
        yield read_bytes(path, name, (offset + start, length)).view(dtype)
