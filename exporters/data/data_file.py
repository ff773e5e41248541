"""The external data file of an export: its layout, and writing it piece by piece."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor

from exporters.data.digests import ByteRange
from exporters.data.prefetch import prefetched
from exporters.graph.content import INT4, UINT4, Content
from exporters.graph.values import Parameter
from zoo.core.progress import Progress, Stage
from zoo.weights.source import WeightError, WeightSource

ALIGNMENT = 64
PAGE = 4096
"""Alignment of large weights, in bytes, so that runtimes can map them."""


@dataclass(frozen=True)
class Region:
    """The location of a tensor in the data file, in bytes, and its content; it may be one part of that content."""

    offset: int
    length: int
    content: Content
    part: int = 0


OnRegions = Callable[[Sequence[Region]], None]
"""Takes the regions written since the last call."""

OnWritten = Callable[[Iterable[ByteRange]], None]
"""Takes the places written since the last call."""


def lay_out(parameters: Iterable[Parameter]) -> dict[str, Region]:
    """Give every weight a region, in the order given; a weight that several graphs or names use gets one."""
    regions: dict[str, Region] = {}
    places: dict[tuple[Content, int], Region] = {}
    end = 0
    for parameter in parameters:
        if parameter.name in regions:
            continue
        if known := places.get((parameter.content, parameter.part)):
            regions[parameter.name] = known
            continue
        length = stored_bytes(parameter.shape, parameter.dtype)
        offset = aligned(end, length)
        region = Region(offset, length, parameter.content, parameter.part)
        regions[parameter.name] = places[parameter.content, parameter.part] = region
        end = offset + length
    return regions


def aligned(end: int, length: int) -> int:
    """The offset of a tensor of ``length`` bytes that follows ``end``."""
    alignment = PAGE if length >= 16 * PAGE else ALIGNMENT
    return -(-end // alignment) * alignment


def stored_bytes(shape: tuple[int, ...], dtype: torch.dtype) -> int:
    """The size of a tensor in the data file: two 4-bit values share a byte."""
    count = torch.Size(shape).numel()
    return -(-count // 2) if dtype in (INT4, UINT4) else count * dtype.itemsize


def contents(regions: Iterable[Region]) -> dict[Content, list[Region]]:
    """The parts of each content, in order."""
    parts_by_content: dict[Content, dict[int, Region]] = {}
    for region in regions:
        parts_by_content.setdefault(region.content, {})[region.part] = region
    return {content: [parts[part] for part in sorted(parts)] for content, parts in parts_by_content.items()}


def read_region(path: Path, region: Region) -> Tensor:
    """The bytes of a region of a data file."""
    with path.open("rb") as file:
        file.seek(region.offset)
        return torch.frombuffer(bytearray(file.read(region.length)), dtype=torch.uint8)


def total_bytes(regions: Mapping[str, Region]) -> int:
    """The size of the data file."""
    return max((region.offset + region.length for region in regions.values()), default=0)


def write(path: Path, regions: Mapping[str, Region], source: WeightSource, progress: OnRegions) -> None:
    """Write the data file with at most a few pieces of a few weights in memory.

    Raises :class:`zoo.weights.source.WeightError`, and OSError where the file cannot be written.
    """
    every = contents(regions.values())
    copied = {content: places for content in every if (places := content.raw(source)) is not None}
    made = [functools.partial(content.pieces, source) for content in every if content not in copied]
    with (
        path.open("wb", buffering=0) as file,
        prefetched(made, lambda piece: sum(part.nbytes for part in piece)) as series,
    ):
        file.truncate(total_bytes(regions))
        for content, parts in every.items():
            ends = [region.offset for region in parts]
            for origin, offset, length in copied.get(content, ()):
                with _opened(origin) as original:
                    _copy(original, offset, file, ends[0], length)
                ends[0] += length
            for pieces in () if content in copied else next(series):
                for part, values in enumerate(pieces):
                    file.seek(ends[part])
                    _write_all(file, values.contiguous().view(torch.uint8).numpy().data)
                    ends[part] = file.tell()
            assert ends == [region.offset + region.length for region in parts]
            progress(parts)


def _write_all(file: BinaryIO, data: memoryview) -> None:
    while data:
        data = data[file.write(data) :]


def _copy(original: BinaryIO, start: int, file: BinaryIO, end: int, left: int) -> None:
    """Copy ``left`` bytes from file to file, inside the kernel where possible."""
    while left and hasattr(os, "copy_file_range"):
        try:
            count = os.copy_file_range(original.fileno(), file.fileno(), left, start, end)
        except OSError:  # such as across file systems: read and write show which side fails
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
        raise WeightError(f"{path} cannot be read: {error.strerror}\n  Check the file.") from error


def _read(file: BinaryIO, most: int) -> bytes:
    try:
        block = file.read(most)
    except OSError as error:
        raise WeightError(f"{file.name} cannot be read: {error.strerror}\n  Check the file.") from error
    if not block:
        raise WeightError(f"{file.name} became shorter while it was read\n  Run the command again.")
    return block


def places_of(regions: Mapping[str, Region]) -> dict[str, ByteRange]:
    """The place of each weight: offset and length in bytes."""
    return {name: (region.offset, region.length) for name, region in regions.items()}


def write_weights(
    paths: Sequence[Path],
    regions: Mapping[str, Region],
    source: WeightSource,
    progress: Progress,
    on_written: OnWritten = lambda places: None,
) -> None:
    """Write the data file once; all ``paths`` link to it."""
    done, size = 0, sum(region.length for region in regions.values())

    def advance(written: Sequence[Region]) -> None:
        nonlocal done
        done += sum(region.length for region in written)
        on_written((region.offset, region.length) for region in written)
        progress(Stage("write weights", done, size))

    first, *others = paths
    first.parent.mkdir(exist_ok=True)
    write(first, regions, source, advance)
    for other in others:
        os.link(first, other)
