"""Writing the data file of an export under each of its names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from exporters.data import data_file
from exporters.data.data_file import Region
from exporters.data.digests import ByteRange
from zoo.core.progress import Progress, Stage
from zoo.weights.source import WeightSource

OnWritten = Callable[[Iterable[ByteRange]], None]
"""Takes the places written since the last call."""


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
    data_file.write(first, regions, source, advance)
    for other in others:
        os.link(first, other)
