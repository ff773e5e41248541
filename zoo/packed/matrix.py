"""A matrix that a checkpoint stores as several tensors, such as codes and scales, as one tensor under its float name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from zoo.weights.blocks import Blocks, Quantized
from zoo.weights.source import WeightError
from zoo.weights.stored import FLOATS, StoredCodes, StoredTensor, read_bytes

KINDS: dict[str, torch.dtype] = {
    **FLOATS,
    "I8": torch.int8,
    "U8": torch.uint8,
    "I32": torch.int32,
    "I64": torch.int64,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
}
"""The dtypes of the parts of a packed matrix."""

WORDS = ("I32",)
"""The dtype of words that hold several codes."""

WHOLE = ("I32", "I64")
"""The dtypes of sizes and of the numbers of groups."""

BLOCK_SIZES = (128, 64, 32, 16, 256)
"""The block sizes that operations take, the preferred one first: longer groups are divided into blocks with one
scale."""

_TYPES = {dict: "an object", list: "a list", int: "an integer"}

Value = TypeVar("Value", dict[str, Any], list[Any], int)

Parts = Mapping[str, StoredTensor]
"""The tensors of a matrix by the last part of their names."""


@dataclass(frozen=True, eq=False)
class PackedMatrix:
    """A stored tensor made of others; ``codes_of`` returns None where only ``values`` can be computed."""

    path: Path
    name: str
    format: str
    shape: tuple[int, ...]
    values: Callable[[], Tensor]
    codes_of: Callable[[], StoredCodes | None] = lambda: None

    @property
    def kind(self) -> str:
        return self.format

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32

    @property
    def extent(self) -> None:
        return None

    def outline(self) -> Tensor:
        return torch.empty(self.shape, device="meta")

    def read(self) -> Tensor:
        return self.values()

    def codes(self) -> StoredCodes | None:
        return self.codes_of()


def values_of(stored: StoredTensor) -> Tensor:
    """The values of a tensor of any dtype."""
    dtype = KINDS.get(stored.kind)
    if dtype is None or stored.extent is None:
        raise WeightError(
            f"{stored.path}: {stored.name} has unsupported type {stored.kind}\n  Use the checkpoint's safetensors."
        )
    return read_bytes(stored.path, stored.name, stored.extent).view(dtype).view(stored.shape)


def grouped_parts(
    tensors: Mapping[str, StoredTensor], leaves: Sequence[str]
) -> dict[str, dict[str, StoredTensor]]:
    """The tensors whose names end in one of some leaves, by module and leaf; only modules with the first leaf."""
    modules: dict[str, dict[str, StoredTensor]] = {}
    for name, stored in tensors.items():
        module, _, leaf = name.rpartition(".")
        if leaf in leaves:
            modules.setdefault(module, {})[leaf] = stored
    return {module: parts for module, parts in modules.items() if leaves[0] in parts}


def part(parts: Parts, leaf: str, module: str, rank: int | None = None) -> StoredTensor:
    """A required tensor of a matrix, with a number of dimensions."""
    if leaf in parts:
        if rank is not None:
            check_rank(parts[leaf], rank)
        return parts[leaf]
    first = next(iter(parts.values()))
    raise WeightError(
        f"{first.path}: {module}.{leaf} is missing next to {first.name}\n  Download the checkpoint again."
    )


def check_rank(stored: StoredTensor, rank: int) -> None:
    """Raise :class:`WeightError` where a tensor has another number of dimensions, or no values."""
    if len(stored.shape) != rank:
        raise WeightError(
            f"{stored.path}: {stored.name} must have {rank} dimensions\n  value: {shown(stored.shape)}\n"
            "  Use the checkpoint in BF16."
        )
    if 0 in stored.shape:
        raise WeightError(
            f"{stored.path}: {stored.name} has no values\n  value: {shown(stored.shape)}\n  Download the checkpoint again."
        )


def check_shape(stored: StoredTensor, wanted: tuple[int, ...], because: str) -> None:
    """Raise :class:`WeightError` where a tensor's shape disagrees with the other tensors of its matrix and the
    config."""
    if stored.shape != wanted:
        raise WeightError(
            f"{stored.path}: {stored.name} must be {shown(wanted)}: {because}\n  value: {shown(stored.shape)}\n"
            "  Use config.json and tensors from the same checkpoint."
        )


def check_kind(stored: StoredTensor, kinds: Iterable[str]) -> None:
    """Raise :class:`WeightError` where a tensor has another dtype, whose numbers would mean something else."""
    if stored.kind not in kinds:
        raise WeightError(
            f"{stored.path}: {stored.name} must be {' or '.join(kinds)}\n  value: {stored.kind}\n"
            "  Use config.json and tensors from the same checkpoint."
        )


def check_single(stored: StoredTensor, of: str) -> None:
    """Raise :class:`WeightError` where a tensor is not a single float, which scales the whole tensor ``of``."""
    check_kind(stored, FLOATS)
    if stored.shape != (1,):
        check_shape(stored, (), f"{of} has one such scale")


def group_width(weight: StoredTensor, scale: StoredTensor, rows: int, width: int) -> int:
    """The number of columns that share a scale, where the shape of the scales alone states it: N G.

    It must be a power of two, or a whole row: other numbers of scales leave several possible widths.
    """
    groups = scale.shape[-1] if scale.shape else 1
    check_shape(scale, (rows, groups), f"{weight.name} has {rows} rows")
    group = width // max(1, groups)
    if groups < 1 or group * groups != width or (groups > 1 and group & (group - 1)):
        raise WeightError(
            f"{scale.path}: {scale.name} must divide {width} columns of {weight.name} into groups of a power of two\n"
            f"  value: {groups} groups\n  Use config.json and tensors from the same checkpoint."
        )
    return group


def shown(shape: tuple[int, ...]) -> str:
    """A shape in words."""
    return " x ".join(map(str, shape)) or "a scalar"


def unpacked(words: Tensor, bits: int, axis: int) -> Tensor:
    """Unsigned numbers of a few bits from int32 words along an axis, the first in the lowest bits: as uint8."""
    shifts = torch.arange(0, 32, bits, dtype=torch.int32)
    apart = (words.unsqueeze(axis + 1) >> shifts.view(-1, *[1] * (words.dim() - axis - 1))) & (2**bits - 1)
    return apart.to(torch.uint8).flatten(axis, axis + 1)


def block_size_of(group: int, width: int) -> int:
    """The block size into which groups of columns are divided, where groups are longer than blocks can be."""
    if group in BLOCK_SIZES:
        return group
    fitting = next((size for size in BLOCK_SIZES if group % size == 0), None)
    return fitting or (BLOCK_SIZES[0] if group >= width else group)


def in_blocks(codes: Tensor, scales: Tensor, zeros: Tensor | None, group: int, blocks: Blocks) -> Quantized:
    """Codes N K with scales and zero points N G as blocks, each with the scales of its group."""
    size, middle = blocks.size_in(codes.shape[1]), blocks.middle
    padded = torch.nn.functional.pad(codes, (0, -codes.shape[1] % size), value=middle)
    apart = padded.unflatten(1, (-1, size))

    def spread(table: Tensor) -> Tensor:
        return table.repeat_interleave(-(-group // size), 1)[:, : apart.shape[1]].contiguous()

    spread_scales = spread(scales)
    shifts = torch.full(spread_scales.shape, middle, dtype=torch.uint8) if zeros is None else spread(zeros)
    return Quantized(apart, spread_scales, shifts)


def dequantized(codes: Tensor, scales: Tensor, zeros: Tensor | int) -> Tensor:
    """(codes - zeros) * scales in float32: exact for integers and scales of at most 16 bits."""
    return (codes.float() - (zeros.float() if isinstance(zeros, Tensor) else zeros)) * scales.float()


def field(config: Mapping[str, Any], name: str, default: Value, where: str) -> Value:
    """A field of a quantization_config, of the type of its default. Raises :class:`WeightError`."""
    value = config.get(name)
    if value is None:
        return default
    if type(value) is not type(default):
        raise WeightError(
            f"{where}: quantization_config.{name}: must be {_TYPES[type(default)]}\n  value: {value!r}\n"
            "  Use the file that was published with the tensors."
        )
    return value


def option(
    config: Mapping[str, Any], name: str, values: Sequence[Any], where: str, default: Any = None
) -> Any:
    """A field of a quantization_config, which must have one of some values. Raises :class:`WeightError`."""
    value = config.get(name, default)
    if value not in values:
        able = ", ".join(map(repr, values))
        raise WeightError(
            f"{where}: quantization_config.{name}: is not supported\n  value: {value!r}\n  Supported: {able}. Otherwise use the "
            "checkpoint in BF16 or F16."
        )
    return value
