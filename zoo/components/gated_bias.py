"""Relative position biases that each layer gates (WavLM: Chen et al., 2021).

Shapes: batch B, query length T, key length S, heads H, head width K.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

import specs.kinds.relative_bias as spec
from zoo.components.linear import Linear
from zoo.components.relative_bias import RelativeBias
from zoo.core.initialization import Distribution
from zoo.registry import builds


class BiasGate(nn.Module):
    """a * (b * factor - 1) + 2, with gates a and b of each head's part of the input."""

    def __init__(self, heads: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.projection = Linear(width, 8)
        self.factor = nn.Parameter(torch.empty(1, heads, 1, 1))

    def initial(self, leaf: str) -> Distribution:
        """A gate between 1 and 2."""
        return Distribution(constant=1.0)

    def forward(self, x: Tensor) -> Tensor:
        """B T (H K) -> B H T 1."""
        sums = self.projection(x.unflatten(-1, (-1, self.width))).unflatten(-1, (2, 4)).sum(-1)  # B T H 2
        a, b = torch.sigmoid(sums.transpose(1, 2)).chunk(2, -1)  # B H T 1
        return a * (b * self.factor - 1.0) + 2.0


@builds(spec.RelativeBias, when=lambda spec, context: spec.gated)
class GatedRelativeBias(RelativeBias):
    """A trained bias per distance bucket and head, times the gate that each attention computes."""

    def bias(self, queries: Tensor, keys: Tensor, like: Tensor) -> None:
        return None

    def distances(self, queries: Tensor, keys: Tensor, like: Tensor) -> Tensor:
        return self.looked_up(self.table, queries, keys, like)

    def layer_bias(
        self, bias: Tensor | None, distances: Tensor, attention: Any, x: Tensor, query: Tensor, key: Tensor
    ) -> Tensor:
        gated = attention.bias_gate(x) * distances  # B H T S
        return gated if bias is None else gated + bias
