"""Biases of scores that grow with distance."""

from __future__ import annotations

import math

import torch
from torch import Tensor

import specs.kinds.alibi as spec
from zoo import functional
from zoo.components.position import Position
from zoo.context import PositionContext
from zoo.core.sharding import Sharding, counted
from zoo.registry import builds


def alibi_slopes(heads: int) -> tuple[float, ...]:
    """The slope of each head: a geometric sequence, as in the reference code for any number of heads."""
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    between = [2 ** (-4 * (2 * i + 1) / power) for i in range(heads - power)]
    return tuple(slopes + between)


@builds(spec.Alibi)
class Alibi(Position):
    """-slope * distance, times a scale."""

    def __init__(self, spec: spec.Alibi, context: PositionContext) -> None:
        super().__init__(spec, context)
        assert context.heads is not None
        self.slopes = alibi_slopes(context.heads)
        self.scale = spec.scale
        self.rounded = spec.precision == "bfloat16"
        if self.rounded:
            self.slopes = tuple(
                torch.tensor(self.slopes, dtype=torch.float32, device="cpu").bfloat16().tolist()
            )

    def sharding(self) -> Sharding:
        """By heads."""
        return Sharding(counts={"heads": len(self.slopes)}, divided=counted(slopes=len(self.slopes)))

    def bias(self, queries: Tensor, keys: Tensor, like: Tensor) -> Tensor:
        if not self.rounded:
            return functional.alibi_bias(self.slopes, queries, keys, like, scale=self.scale)
        penalties = self._rounded(keys, like)  # (B or 1) H 1 S
        return (penalties if self.scale == 1.0 else penalties * self.scale).to(like.dtype)

    def _rounded(self, keys: Tensor, like: Tensor) -> Tensor:
        """slope * key position, both factors and the product in bfloat16: (B or 1) S -> (B or 1) H 1 S.

        It differs from slope * -distance by a constant per query, which softmax cancels, and by rounding.
        """
        slopes = functional.constant(self.slopes, like)[:, None, None]  # H 1 1
        product = (
            slopes * functional.rounded_to_bfloat16(keys)[:, None, None]
        )  # (B or 1) H 1 S, exact in float32
        return functional.rounded_to_bfloat16(product)
