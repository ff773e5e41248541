"""The position of BROS (Hong et al., 2022).

Shapes: batch B, tokens T, heads H, head width K, corners C, frequencies F.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

import specs.kinds.relative_boxes as spec
from specs.kinds.embedding import CORNERS
from zoo import functional
from zoo.components.linear import EmbeddingTable
from zoo.components.position import Position
from zoo.context import PositionContext
from zoo.core.precision import in_dtype, wide
from zoo.core.sharding import SHARED, Sharding
from zoo.registry import builds


class Waves(NamedTuple):
    """The sines and cosines of the corners of every token, B T (C F)."""

    sine: Tensor
    cosine: Tensor


@builds(spec.RelativeBoxes)
class RelativeBoxes(Position):
    """A product of each query with P [sin(f (b - a)), cos(f (b - a))], for the corners a of its box and b of the key's.

    By the sums of angles, it is one of a vector of the query, which its own corners turn, with the sines and cosines of the key.
    """

    def __init__(self, spec: spec.RelativeBoxes, context: PositionContext) -> None:
        super().__init__(spec, context)
        assert context.head_width is not None
        width = context.d_model // 4
        exponents = torch.arange(0, width // CORNERS, 2, dtype=torch.float32, device="cpu") / (
            width // CORNERS
        )
        self.frequencies = tuple((1.0 / spec.theta**exponents).tolist())
        self.projection = EmbeddingTable(context.head_width, width)

    def sharding(self) -> Sharding:
        """A matrix that the queries of all heads are multiplied with."""
        return Sharding({"projection": SHARED})

    def waves(self, corners: Tensor) -> Waves:
        """The waves that all layers compare with: B T C, float32."""
        angles = wide(corners)[..., None] * functional.constant(self.frequencies, corners)  # B T C F
        return Waves(angles.sin().flatten(-2), angles.cos().flatten(-2))

    def layer_bias(
        self, bias: Tensor | None, distances: Waves, attention: Any, x: Tensor, query: Tensor, key: Tensor
    ) -> Tensor:
        sine, cosine = (in_dtype(wave, query.dtype)[:, None] for wave in distances)  # B 1 T (C F)
        vectors = (attention.scale * query) @ in_dtype(self.projection.weight, query.dtype)  # B H T (C 2 F)
        split = vectors.unflatten(-1, (CORNERS, 2, -1))
        to_sine, to_cosine = split[..., 0, :].flatten(3), split[..., 1, :].flatten(3)  # B H T (C F)
        with_sine, with_cosine = to_sine * cosine + to_cosine * sine, to_cosine * cosine - to_sine * sine
        compared = torch.cat((with_sine, with_cosine), -1) @ torch.cat((sine, cosine), -1).transpose(-1, -2)
        return compared if bias is None else bias + compared
