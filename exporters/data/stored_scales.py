"""The scales of cached keys and values in a data file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from exporters.data.data_file import Region, read_region
from exporters.graph.content import Content
from exporters.graph.quantization.cache_scales import KEY, VALUE, CacheScale, Scales
from exporters.graph.values import Graph


def with_scales(regions: Mapping[str, Region], scales: Scales) -> dict[str, Region]:
    """The regions of a data file, with the values of cache scales."""
    filled: dict[Content, Content] = {
        region.content: region.content.filled(scales)
        for region in regions.values()
        if isinstance(region.content, CacheScale)
    }
    return {
        name: replace(region, content=filled.get(region.content, region.content))
        for name, region in regions.items()
    }


def read_scales(graphs: Iterable[Graph], path: Path, regions: Mapping[str, Region]) -> Scales:
    """The cache scales of graphs in a data file, by the path of their attention; empty for a float cache."""
    scales: dict[str, dict[str, Tensor]] = {}
    for graph in graphs:
        for name, parameter in graph.parameters.items():
            content = parameter.content
            if isinstance(content, CacheScale):
                values = read_region(path, regions[name]).view(parameter.dtype)
                scales.setdefault(content.path, {})[content.part] = values.view(parameter.shape[1:])
    return {path: (parts[KEY], parts[VALUE]) for path, parts in scales.items()}
