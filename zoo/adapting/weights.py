"""The weights of a variant, from a checkpoint: one tensor in memory at a time, with the tensors that it is made of."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from zoo.adapting.plan import Origin, Plan
from zoo.core.tensors import weight_tensors
from zoo.weights.random import RandomWeights
from zoo.weights.source import WeightSource
from zoo.weights.stored import narrowed


class AdaptedWeights(WeightSource):
    """The weights of ``model`` by a plan: from ``stored``, the weights of ``source``, in float32, or else from ``drawn``."""

    def __init__(
        self,
        plan: Plan,
        model: nn.Module,
        source: nn.Module,
        stored: WeightSource,
        drawn: RandomWeights,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.description = f"{stored.description}, adapted"
        self.dtype = dtype
        self._origins = {origin.tensor: origin for origin in plan.origins}
        self._shapes, self._sources = dict(weight_tensors(model)), dict(weight_tensors(source))
        self._stored, self._drawn = stored, drawn

    @torch.no_grad()
    def pieces(self, name: str) -> Iterator[Tensor]:
        origin = self._origins[name]
        if origin.rule is None:
            yield from self._drawn.pieces(name)
        else:
            values = origin.rule.apply(self._read(origin), lambda: self._draw(name))
            yield narrowed(values.reshape(-1), self.dtype, f"{self.description}: {name}")

    def _read(self, origin: Origin) -> Tensor:
        """The source's tensor, or the mean of several."""
        first, *others = (self._stored.whole(source, self._sources[source]) for source in origin.sources)
        return sum(others, first) / (1 + len(others)) if others else first

    def _draw(self, name: str) -> Tensor:
        return self._drawn.whole(name, self._shapes[name].float())
