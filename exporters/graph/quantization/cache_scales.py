"""The scales of a graph's cached keys and values: tensors of its data file, calibrated before it is written.

Shapes: key-value heads G, head width K.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from exporters.graph.quantization.cache_scheme import CacheFormat
from exporters.graph.values import Graph
from zoo.weights.source import WeightSource

KEY, VALUE = "key", "value"

Scales = Mapping[str, tuple[Tensor, Tensor]]
"""The scales of keys and of values, G 1 K each, by the path of their attention."""


@dataclass(eq=False)
class CacheScale:
    """The content of one scale tensor, for the keys or the values (``part``) of the attention at ``path``.

    ``values`` are G 1 K in float32, None until they are calibrated.
    """

    path: str
    part: str
    format: CacheFormat
    values: Tensor | None = None

    @property
    def name(self) -> str:
        """The name of the tensor, such as ``decoder.blocks.0.attention.key_scale``."""
        return f"{self.path}.{self.part}_scale"

    @property
    def names(self) -> tuple[str, ...]:
        """Empty: no weight is stored in it."""
        return ()

    def pieces(self, source: WeightSource) -> Iterator[tuple[Tensor, ...]]:
        """Yield the values, whatever the weights."""
        assert self.values is not None
        yield (self.values.reshape(-1),)

    def raw(self, source: WeightSource) -> None:
        """None: no file holds the values."""

    def restored(self, tensors: Sequence[Tensor]) -> Tensor:
        """Empty: no weight is stored in it."""
        return torch.empty(0)


@dataclass(frozen=True)
class QuantizedCache:
    """The cache of a graph: its format, and the scales of each attention."""

    format: CacheFormat
    scales: Scales


def _contents(graphs: Iterable[Graph]) -> list[CacheScale]:
    contents = (parameter.content for graph in graphs for parameter in graph.parameters.values())
    return list(dict.fromkeys(content for content in contents if isinstance(content, CacheScale)))


def format_of(graphs: Iterable[Graph]) -> CacheFormat | None:
    """The cache format of graphs; None for a float cache."""
    return next((content.format for content in _contents(graphs)), None)


def fill(graphs: Iterable[Graph], scales: Scales) -> None:
    """Set the cache scales of graphs."""
    for content in _contents(graphs):
        content.values = scales[content.path][(KEY, VALUE).index(content.part)]


def cache_of(graphs: Iterable[Graph]) -> QuantizedCache | None:
    """The quantized cache of graphs whose scales are set; None for a float cache."""
    scales_by_path: dict[str, dict[str, Tensor]] = {}
    contents = _contents(graphs)
    for content in contents:
        assert content.values is not None
        scales_by_path.setdefault(content.path, {})[content.part] = content.values
    scales = {path: (parts[KEY], parts[VALUE]) for path, parts in scales_by_path.items()}
    return QuantizedCache(contents[0].format, scales) if contents else None
