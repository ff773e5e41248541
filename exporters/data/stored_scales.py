"""The scales of cached keys and values, as a data file holds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from exporters.data.data_file import Region, read_region
from exporters.graph.quantization.cache_scales import CacheScale
from exporters.graph.values import Graph


def read_scales(graphs: Iterable[Graph], path: Path, regions: Mapping[str, Region]) -> None:
    """Give the scales of graphs the values that a data file holds."""
    for graph in graphs:
        for name, parameter in graph.parameters.items():
            if isinstance(parameter.content, CacheScale):
                values = read_region(path, regions[name]).view(parameter.dtype)
                parameter.content.values = values.view(parameter.shape[1:])
