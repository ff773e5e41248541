"""The scales of a graph's cached keys and values: tensors of its data file, whose values calibration finds.

Shapes: key-value heads G, head width K.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from exporters.graph.quantization.cache_scheme import CacheFormat
from exporters.graph.values import Graph
from zoo.weights.source import WeightSource

KEY, VALUE = "key", "value"

Scales = Mapping[str, tuple[Tensor, Tensor]]
"""The scales of keys and of values, G 1 K each, by the path of their attention."""


@dataclass(frozen=True, eq=False)
class CacheScale:
    """The content of one scale tensor: the scales of the keys or of the values (``part``) of the attention at ``path``.

    ``values`` are G 1 K in float32. A graph only declares the tensor, without values: :meth:`filled` gives it some.
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

    def filled(self, scales: Scales) -> CacheScale:
        """The content with the values of its attention."""
        return replace(self, values=scales[self.path][(KEY, VALUE).index(self.part)])

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


def format_of(graphs: Iterable[Graph]) -> CacheFormat | None:
    """The format of the cache of some graphs; None for float."""
    contents = (parameter.content for graph in graphs for parameter in graph.parameters.values())
    return next((content.format for content in contents if isinstance(content, CacheScale)), None)


def cache_of(graphs: Iterable[Graph], scales: Scales) -> QuantizedCache | None:
    """The cache of graphs with these scales; None for a float cache."""
    cache_format = format_of(graphs)
    return None if cache_format is None else QuantizedCache(cache_format, scales)
