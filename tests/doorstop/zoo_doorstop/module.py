"""The implementation of each kind."""

import math

import torch
from torch import Tensor, nn

from zoo.components.attention_variations import VariedSelfAttention
from zoo.components.block import PreNorm
from zoo.components.connector import Connector
from zoo.components.decay import fixed_decays
from zoo.components.embedding import Tokens
from zoo.components.linear import EmbeddingTable, Linear
from zoo.components.position import Position
from zoo.components.rope_frequencies import Rotation, scaled
from zoo.context import BuildContext
from zoo.core.initialization import Distribution, WeightPlace, distribution_for
from zoo.registry import builds
from zoo_doorstop import spec


@builds(spec.Bottleneck)
class Bottleneck(nn.Module):
    def __init__(self, spec: spec.Bottleneck, context: BuildContext) -> None:
        super().__init__()
        self.up = Linear(context.d_model, spec.hidden)
        self.down = Linear(spec.hidden, context.d_model)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.up(x).relu())


@builds(spec.Half)
class Half(nn.Module):
    def __init__(self, spec: spec.Half, context: BuildContext) -> None:
        super().__init__()

    def forward(self, x: Tensor, branch: Tensor) -> Tensor:
        return x + branch * 0.5


@builds(spec.Ramp)
class Ramp(Position):
    def __init__(self, spec: spec.Ramp, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.direction = EmbeddingTable(1, context.d_model)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + positions.to(x.dtype).unsqueeze(-1) * self.direction.weight


@builds(spec.ScaledWords)
class ScaledWords(nn.Module):
    def __init__(self, spec: spec.ScaledWords, context: BuildContext) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(context.d_model))

    def forward(self, x: Tensor, counts: Tensor) -> Tensor:
        return x * self.weight


@scaled.register
def _slower(scaling: spec.Slower, frequencies: Tensor, rotation: Rotation) -> tuple[Tensor, float]:
    return frequencies / 3, 1.0


@fixed_decays.register
def _halving(decay: spec.Halving, heads: int, layer: int, layers: int) -> tuple[float, ...]:
    return (math.log(0.5),) * heads


@builds(spec.NegatedAttention)
class NegatedAttention(VariedSelfAttention):
    def forward(self, *inputs):
        x, present = super().forward(*inputs)
        return -x, present


@builds(spec.Cut)
class Cut(Connector):
    def __init__(self, spec: spec.Cut, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.width = context.d_model
        self.weight = nn.Parameter(torch.empty(self.width))

    def forward(self, x: Tensor, side: int) -> Tensor:
        return self.chosen(x, side)[:, :, : self.width] * self.weight


@builds(spec.PlainBlock)
class PlainBlock(PreNorm):
    pass


@builds(spec.DoubledTokens)
class DoubledTokens(Tokens):
    def forward(
        self,
        input_ids: Tensor,
        positions: Tensor,
        token_type_ids: Tensor | None = None,
        mask: Tensor | None = None,
        **beside: Tensor | None,
    ) -> Tensor:
        return 2 * super().forward(input_ids, positions, token_type_ids, mask, **beside)


@builds(spec.Pair)
class Pair(nn.Module):
    def __init__(self, spec: spec.Pair, context: BuildContext) -> None:
        super().__init__()
        self.scores = Linear(context.d_model, spec.labels)

    def forward(self, x: Tensor, tokens: object) -> dict[str, Tensor]:
        return {"logits": self.scores(x)}


@distribution_for.register
def _tiny(recipe: spec.Tiny, place: WeightPlace) -> Distribution:
    return Distribution(std=0.01)
