"""The external data of an export: where each weight lies, and writing them one piece at a time."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import torch

from exporters.graph import Parameter
from zoo.weights.source import WeightSource

ALIGNMENT = 64
PAGE = 4096
"""Large weights start on a page, so that runtimes can map them."""

Progress = Callable[[int], None]
"""Told how many bytes have been written since the last call."""


@dataclass(frozen=True)
class Region:
    """Where a weight lies in the data file, in bytes."""

    offset: int
    length: int


def lay_out(parameters: Iterable[Parameter]) -> dict[str, Region]:
    """A place for every weight, in the order given; a weight that several graphs use has one place."""
    regions: dict[str, Region] = {}
    end = 0
    for parameter in parameters:
        if parameter.name in regions:
            continue
        length = torch.Size(parameter.shape).numel() * parameter.dtype.itemsize
        alignment = PAGE if length >= 16 * PAGE else ALIGNMENT
        offset = -(-end // alignment) * alignment
        regions[parameter.name] = Region(offset, length)
        end = offset + length
    return regions


def total_bytes(regions: Mapping[str, Region]) -> int:
    """The size of the data file."""
    return max((region.offset + region.length for region in regions.values()), default=0)


def write(path: Path, regions: Mapping[str, Region], source: WeightSource, progress: Progress) -> None:
    """Write the data file; at no time is more than one piece of one weight in memory.

    Raises :class:`zoo.weights.source.WeightError`, and OSError where the place cannot be written.
    """
    with path.open("wb", buffering=0) as file:
        file.truncate(total_bytes(regions))
        for name, region in regions.items():
            stored = source.raw(name)
            if stored is not None:
                origin, offset, _ = stored
                with origin.open("rb", buffering=0) as original:
                    _copy(original, offset, file, region)
            else:
                file.seek(region.offset)
                for piece in source.pieces(name):
                    _write_all(file, memoryview(piece.contiguous().view(torch.uint8).numpy()))
            progress(region.length)


def _write_all(file: BinaryIO, data: memoryview) -> None:
    while data:
        data = data[file.write(data) :]


def _copy(original: BinaryIO, offset: int, file: BinaryIO, region: Region) -> None:
    """Copy bytes from file to file, inside the kernel where it can."""
    left, start, end = region.length, offset, region.offset
    while left and hasattr(os, "copy_file_range"):
        try:
            count = os.copy_file_range(original.fileno(), file.fileno(), left, start, end)
        except OSError as error:
            if error.errno in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
                break
            raise
        if count == 0:
            break
        left, start, end = left - count, start + count, end + count
    original.seek(start)
    file.seek(end)
    while left:
        block = original.read(min(left, 2**24))
        if not block:
            raise OSError(errno.EIO, f"{original.name} ends early")
        _write_all(file, memoryview(block))
        left -= len(block)
