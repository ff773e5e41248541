"""Several residual streams, of which the first passes the layers (AltUp: Baykal et al., 2023).

Shapes: batch B, tokens T, width D, streams N.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

import specs.kinds.altup as spec
from zoo.components.block import Block, Branch, LayerCall
from zoo.components.linear import Linear
from zoo.components.per_layer_embedding import PerLayerEmbedding
from zoo.context import BuildContext
from zoo.core.initialization import Distribution
from zoo.core.precision import in_dtype, wide
from zoo.core.sharding import Sharding
from zoo.registry import build_component

LEAST = 1e-5
"""The lower bound of a mean square that streams are divided by the root of."""


class AltUp(nn.Module):
    """The coefficients of a layer, from the tanh of a projection of norm(x) / D."""

    component_kind = "altup"
    stream_methods: ClassVar = {
        "predict": "Predict streams",
        "correct": "Correct streams",
        "scaled_first": "Scale first stream",
        "join_others": "Add to other streams",
    }

    def __init__(self, spec: spec.AltUp, context: BuildContext) -> None:
        super().__init__()
        self.streams, self.d_model = spec.streams, context.d_model
        self.norm = build_component(spec.norm, context)
        self.router = Linear(context.d_model, spec.streams, bias=False)
        self.prediction = Linear(spec.streams, spec.streams**2, bias=False)
        self.correction = Linear(spec.streams, spec.streams, bias=False)
        self.output_scale = nn.Parameter(torch.empty(context.d_model))  # D

    def sharding(self) -> Sharding:
        """Whole on every process: all streams pass, and the matrices are small."""
        return Sharding()

    def initial(self, leaf: str) -> Distribution | None:
        """The first stream as it is."""
        return Distribution(constant=1.0)

    @classmethod
    def extend(cls, block: Block, spec: spec.AltUp, context: BuildContext) -> None:
        """Let a block pass several streams; a per-layer embedding of it is gated by the first, and joins the others."""
        altup = cls(spec, context)
        block.extend("altup", altup, innermost=True)
        for extension in block.extensions:
            if isinstance(extension, PerLayerEmbedding):
                extension.read, extension.join = altup.scaled_first, altup.join_others

    def around(self, layer: Branch, x: Tensor, call: LayerCall) -> Tensor:
        """All streams, of which the layer passes the first: B T N D -> B T N D."""
        predicted = self.predict(x)
        return self.correct(predicted, layer(predicted[:, :, 0], call))

    def _modalities(self, x: Tensor) -> Tensor:
        """B T D -> B T N."""
        return torch.tanh(wide(self.router(self.norm(x) * (1.0 / self.d_model))))

    def predict(self, x: Tensor) -> Tensor:
        """All streams plus a sum of them with coefficients that follow from the first: B T N D -> B T N D."""
        coefficients = self.prediction(self._modalities(x[:, :, 0])).unflatten(
            -1, (self.streams, self.streams)
        )
        return wide(coefficients) @ x + x

    def correct(self, predicted: Tensor, passed: Tensor) -> Tensor:
        """All streams plus multiples of what the branches changed in the first: B T N D and B T D -> B T N D."""
        change = passed - predicted[:, :, 0]  # B T D
        coefficients = wide(self.correction(self._modalities(passed))) + 1.0  # B T N
        return predicted + coefficients[..., None] * change[:, :, None]

    def scaled_first(self, x: Tensor) -> Tensor:
        """The first stream times a trained factor per feature: B T N D -> B T D."""
        return x[:, :, 0] * in_dtype(self.output_scale, x.dtype)

    def join_others(self, x: Tensor, embedding: Tensor) -> Tensor:
        """All streams, with an embedding added to all but the first: B T N D and B T D -> B T N D."""
        return torch.cat([x[:, :, :1], x[:, :, 1:] + embedding[:, :, None]], 2)


class Streams(nn.Module):
    """From the embedding to several streams of its size, and from the last ones to their mean."""

    component_kind = "streams"

    def __init__(self, spec: spec.AltUp, context: BuildContext) -> None:
        super().__init__()
        width, others = context.d_model, range(spec.streams - 1)
        self.into = nn.ModuleList(Linear(width, width, bias=False) for _ in others)
        self.out = nn.ModuleList(Linear(width, width, bias=False) for _ in others)

    def spread(self, x: Tensor) -> Tensor:
        """B T D -> B T N D."""
        x = wide(x)
        return torch.stack([x, *(_as_large(layer(x), x) for layer in self.into)], 2)

    def gathered(self, x: Tensor) -> Tensor:
        """B T N D -> B T D."""
        first = x[:, :, 0]
        others = [_as_large(layer(x[:, :, i + 1]), first) for i, layer in enumerate(self.out)]
        return torch.stack([first, *others], 2).mean(2)


def _as_large(x: Tensor, like: Tensor) -> Tensor:
    """x with the root mean square of another: B T D and B T D -> B T D."""
    x = wide(x)
    size = torch.sqrt((like * like).mean(-1, keepdim=True))
    return x * size / torch.sqrt((x * x).mean(-1, keepdim=True).clamp(min=LEAST))
