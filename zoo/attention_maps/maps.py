"""Attention weights as maps, and how spread out they are.

Shapes: heads H, queries T, keys S.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from zoo.attention_maps.choice import StackName


@dataclass(frozen=True)
class LayerMap:
    """The attention weights of some heads of a layer for one sequence.

    heads: their numbers; weights: H T S, summing to 1 per query; seen: T S, which keys a query may see.  With a ``sink``, the
    last key is the attention sink, a score without a value, which every query may see.
    """

    stack: StackName
    layer: int
    heads: Sequence[int]
    weights: Tensor
    seen: Tensor
    sink: bool

    @cached_property
    def entropy(self) -> list[float]:
        """The mean entropy of each head's weights over queries, in bits."""
        entropies: list[float] = (_entropies(self.weights).mean(-1)).tolist()
        return entropies

    @cached_property
    def uniform_entropy(self) -> float:
        """The entropy of uniform weights over all visible keys, in bits."""
        return float(self.seen.sum(-1).double().log2().mean())

    def views(self, *, mean: bool = False) -> list[HeadMap]:
        """One map per head, or one of their mean."""
        uniform = self.uniform_entropy
        if mean:
            spread = sum(self.entropy) / len(self.entropy)
            title = f"layer {self.layer}, mean of {len(self.heads)} head{'s' * (len(self.heads) > 1)}"
            return [HeadMap(self, title, self.weights.mean(0), spread, uniform)]
        return [
            HeadMap(self, f"layer {self.layer}, head {head}", weights, entropy, uniform)
            for head, weights, entropy in zip(self.heads, self.weights, self.entropy, strict=True)
        ]


@dataclass(frozen=True)
class HeadMap:
    """A map of weights, T S, of one head or the mean of a layer; ``entropy`` is in bits."""

    layer: LayerMap
    title: str
    weights: Tensor
    entropy: float
    uniform_entropy: float

    @property
    def shares(self) -> Tensor:
        """The weights, T S, with NaN for keys that a query may not see."""
        return self.weights.masked_fill(~self.layer.seen, torch.nan)

    @property
    def spread(self) -> str:
        """The entropy and the entropy of uniform weights, as text."""
        return f"{self.entropy:.2f} of {self.uniform_entropy:.2f} bits"


def _entropies(weights: Tensor) -> Tensor:
    """-sum w log2 w over the last axis."""
    return torch.special.entr(weights.double()).sum(-1) / math.log(2)


def grown(pieces: Sequence[LayerMap]) -> LayerMap:
    """Join the maps of one layer from consecutive steps, whose keys grow with the cache."""
    last = pieces[-1]
    sinks = int(last.sink)
    keys = last.weights.shape[-1]

    def widened(tensor: Tensor) -> Tensor:
        """Pad with 0 or False for keys of later steps, before the sink."""
        missing = keys - tensor.shape[-1]
        own = tensor.shape[-1] - sinks
        empty = tensor.new_zeros((*tensor.shape[:-1], missing))
        return torch.cat((tensor[..., :own], empty, tensor[..., own:]), -1)

    return LayerMap(
        last.stack,
        last.layer,
        last.heads,
        torch.cat([widened(piece.weights) for piece in pieces], 1),
        torch.cat([widened(piece.seen) for piece in pieces], 0),
        last.sink,
    )
