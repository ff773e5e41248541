"""The external data of an export: where each weight lies, and writing them one piece at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import torch

from exporters.content import Content
from exporters.graph import Parameter
from zoo.weights.source import WeightError, WeightSource

ALIGNMENT = 64
PAGE = 4096
"""Large weights start on a page, so that runtimes can map them."""

Progress = Callable[[int], None]
"""Told how many bytes have been written since the last call."""


@dataclass(frozen=True)
class Region:
    """Where a tensor lies in the data file, in bytes, and what it is made of."""

    offset: int
    length: int
    content: Content


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
        regions[parameter.name] = Region(offset, length, parameter.content)
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
        for region in regions.values():
            stored, end = region.content.raw(source), region.offset
            if stored is not None:
                for origin, offset, length in stored:
                    with _opened(origin) as original:
                        _copy(original, offset, file, end, length)
                    end += length
            else:
                file.seek(region.offset)
                for piece in region.content.pieces(source):
                    _write_all(file, piece.contiguous().view(torch.uint8).numpy().data)
                end = file.tell()
            assert end == region.offset + region.length
            progress(region.length)


def _write_all(file: BinaryIO, data: memoryview) -> None:
    while data:
        data = data[file.write(data) :]


def _copy(original: BinaryIO, start: int, file: BinaryIO, end: int, left: int) -> None:
    """Copy ``left`` bytes from file to file, inside the kernel where it can."""
    while left and hasattr(os, "copy_file_range"):
        try:
            count = os.copy_file_range(original.fileno(), file.fileno(), left, start, end)
        except OSError:  # across file systems, for one: read and write tell which side fails
            break
        if count == 0:
            break
        left, start, end = left - count, start + count, end + count
    original.seek(start)
    file.seek(end)
    while left:
        block = _read(original, min(left, 2**24))
        _write_all(file, memoryview(block))
        left -= len(block)


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb", buffering=0)
    except OSError as error:
        raise WeightError(f"{path} cannot be read: {error.strerror}") from error


def _read(file: BinaryIO, most: int) -> bytes:
    try:
        block = file.read(most)
    except OSError as error:
        raise WeightError(f"{file.name} cannot be read: {error.strerror}") from error
    if not block:
        raise WeightError(f"{file.name} has become shorter while it was read")
    return block
