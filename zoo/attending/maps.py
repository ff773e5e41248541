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

from zoo.attending.choice import StackName


@dataclass(frozen=True)
class LayerMap:
    """The weights of some heads of a layer for one sequence.

    heads: their numbers; weights: H T S, each query's add up to 1; seen: T S, which keys a query may see.  With a ``sink``
    the last key is that of attention's sink, a score without a value, which every query may see.
    """

    stack: StackName
    layer: int
    heads: Sequence[int]
    weights: Tensor
    seen: Tensor
    sink: bool

    @cached_property
    def entropy(self) -> list[float]:
        """Of each head the mean over queries of the entropy of their weights, in bits."""
        found: list[float] = (_entropies(self.weights).mean(-1)).tolist()
        return found

    @cached_property
    def uniform_entropy(self) -> float:
        """What it would be if every query weighed all keys alike that it may see, in bits."""
        return float(self.seen.sum(-1).log2().mean())

    def views(self, *, mean: bool = False) -> list[View]:
        """A map for each head, or one for the mean of all."""
        uniform = self.uniform_entropy
        if mean:
            spread = sum(self.entropy) / len(self.entropy)
            title = f"layer {self.layer}, mean of {len(self.heads)} head{'s' * (len(self.heads) > 1)}"
            return [View(self, title, self.weights.mean(0), spread, uniform)]
        return [
            View(self, f"layer {self.layer}, head {head}", weights, entropy, uniform)
            for head, weights, entropy in zip(self.heads, self.weights, self.entropy, strict=True)
        ]


@dataclass(frozen=True)
class View:
    """What is shown as one map: weights, T S, of a layer; ``entropy`` is that of its heads, in bits."""

    layer: LayerMap
    title: str
    weights: Tensor
    entropy: float
    uniform_entropy: float

    @property
    def shares(self) -> Tensor:
        """The weights, T S, with NaN where a query may not look."""
        return self.weights.masked_fill(~self.layer.seen, torch.nan)

    @property
    def spread(self) -> str:
        """The entropy beside that of equal weights, in words."""
        return f"{self.entropy:.2f} of {self.uniform_entropy:.2f} bits"


def _entropies(weights: Tensor) -> Tensor:
    """-sum w log2 w over the last axis."""
    return torch.special.entr(weights.double()).sum(-1) / math.log(2)


def grown(pieces: Sequence[LayerMap]) -> LayerMap:
    """The map of one layer whose queries came in pieces, one after another, the keys of later ones added to a cache."""
    last = pieces[-1]
    sinks = int(last.sink)
    keys = last.weights.shape[-1]

    def widened(tensor: Tensor) -> Tensor:
        """With nothing, or False, where keys were yet to come: before the sink."""
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
