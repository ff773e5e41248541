"""Stacks with several residual streams, with a second one, with a sum over the layers, or with layers that reuse the caches of others.

Shapes: batch B, tokens T, width D, streams N.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor, nn

import specs.model.stack as spec
from specs.kinds.block import BlockParts
from specs.kinds.queries import Queries
from zoo.components.altup import AltUp, Streams
from zoo.components.block import Block
from zoo.components.layer_sum import WeightedLayerSum
from zoo.components.linear import EmbeddingTable
from zoo.components.mixer import MixerContext, State
from zoo.components.relative_boxes import RelativeBoxes
from zoo.components.reused_keys_values import ReusingContext
from zoo.context import BuildContext, StackContext
from zoo.core.initialization import Distribution
from zoo.core.precision import in_dtype, wide
from zoo.models.stack import AfterLayer, EncoderOutput, Stack
from zoo.models.token_positions import TokenPositions


def stack_of(spec: spec.Stack, context: StackContext) -> Stack:
    """The stack of a spec."""
    reuses = any(source is not None for source in spec.key_value_sources(context.d_model))
    if context.second_width is not None:
        return TwoStreamStack(spec, context)
    if spec.queries is not None:
        return QueryStack(spec, spec.queries, context)
    varies = reuses or spec.altup is not None or spec.weighted_layer_sum
    return VariedStack(spec, context) if varies else Stack(spec, context)


class VariedStack(Stack):
    """A stack with variations, each optional.

    ``sources``: for every layer that reuses keys and values, the index of the layer that they belong to.
    """

    def __init__(self, spec: spec.Stack, context: StackContext) -> None:
        super().__init__(spec, context)
        self.sources = spec.key_value_sources(context.d_model)
        self.streams = None if spec.altup is None else Streams(spec.altup, context)
        self.sums_layers = spec.weighted_layer_sum
        self.layer_sum = WeightedLayerSum(len(self.blocks)) if spec.weighted_layer_sum else None

    def built_block(self, spec: spec.Stack, block: BlockParts, context: BuildContext) -> nn.Module:
        built = super().built_block(spec, block, context)
        if spec.altup is not None:
            assert isinstance(built, Block)
            AltUp.extend(built, spec.altup, context)
        return built

    def forward(
        self,
        x: Tensor,
        tokens: TokenPositions,
        past: Sequence[State] | None = None,
        encoded: EncoderOutput | None = None,
        after: AfterLayer | None = None,
    ) -> tuple[Tensor, list[State]]:
        if self.layer_sum is None:
            return super().forward(x, tokens, past, encoded, after)
        outputs = [x]

        def keep(layer: int, x: Tensor) -> Tensor:
            x = x if after is None else after(layer, x)
            outputs.append(self._gathered(x))
            return x

        x, present = super().forward(x, tokens, past, encoded, keep)
        return self.layer_sum([*outputs[:-1], x]), present

    def through_layers(
        self,
        x: Tensor,
        context: MixerContext,
        past: Sequence[State] | None,
        encoded: EncoderOutput | None,
        after: AfterLayer | None,
    ) -> tuple[Tensor, list[State]]:
        x = x if self.streams is None else self.streams.spread(x)  # B T N D
        x, present = super().through_layers(x, context, past, encoded, after)
        return self._gathered(x), present

    def _gathered(self, x: Tensor) -> Tensor:
        """The mean of all streams: B T N D -> B T D."""
        return x if self.streams is None else self.streams.gathered(x)

    def layer_context(self, layer: int, context: MixerContext, present: Sequence[State]) -> MixerContext:
        source = self.sources[layer]
        return context if source is None else ReusingContext.after(context, present[source])

    def reused_layers(self) -> set[int]:
        return {source for source in self.sources if source is not None}

    def ties_between_layers(self) -> list[str]:
        ties = {
            "layers reuse keys and values of others": bool(self.reused_layers()),
            "streams are gathered from all layers": self.streams is not None,
            "layer_sum reads all layers": self.layer_sum is not None,
        }
        return [tie for tie, holds in ties.items() if holds]


class TwoStreamStack(Stack):
    """A stack that finds a second stream after the first in its input, B T (D + W), for blocks that pass both, or for positions."""

    def __init__(self, spec: spec.Stack, context: StackContext) -> None:
        super().__init__(spec, context)
        self.width, self.passes_both = context.d_model, spec.block.passes_second

    def first_stream(self, x: Tensor) -> Tensor:
        return x[..., : self.width]

    def mixer_context(
        self, x: Tensor, tokens: TokenPositions, keys: Tensor, encoder_mask: Tensor | None = None
    ) -> MixerContext:
        context = super().mixer_context(self.first_stream(x), tokens, keys, encoder_mask)
        shared, second = dict(context.attention.shared), x[..., self.width :]
        shared.update(
            (position.name, position.waves(second))
            for position in self.positions
            if isinstance(position, RelativeBoxes)
        )
        return replace(context, attention=replace(context.attention, shared=shared))

    def through_layers(
        self,
        x: Tensor,
        context: MixerContext,
        past: Sequence[State] | None,
        encoded: EncoderOutput | None,
        after: AfterLayer | None,
    ) -> tuple[Tensor, list[State]]:
        x = x if self.passes_both else self.first_stream(x)
        x, present = super().through_layers(x, context, past, encoded, after)
        return self.first_stream(x) if self.passes_both else x, present

    def ties_between_layers(self) -> list[str]:
        return ["layers read a second stream"]


class QueryStack(Stack):
    """A stack in which queries join the vectors of an image, after them: B T D -> B (T + Q) D.

    ``mask_probabilities``: how likely a query sees only the patches of its own mask in each of its layers, which training lowers to 0.
    """

    zero_weights: ClassVar[tuple[str, ...]] = ("mask_probabilities",)
    """Weights that are zeros in every model, which no graph reads."""

    mask_probabilities: Tensor

    def __init__(self, spec: spec.Stack, queries: Queries, context: StackContext) -> None:
        super().__init__(spec, context)
        self.query = EmbeddingTable(queries.count, context.d_model)
        self.before = spec.depth - queries.layers
        self.register_buffer("mask_probabilities", torch.empty(queries.layers))

    def initial(self, leaf: str) -> Distribution:
        """As after training."""
        return Distribution(constant=0.0)

    def through_layers(
        self,
        x: Tensor,
        context: MixerContext,
        past: Sequence[State] | None,
        encoded: EncoderOutput | None,
        after: AfterLayer | None,
    ) -> tuple[Tensor, list[State]]:
        def follow(layer: int, x: Tensor) -> Tensor:
            x = x if after is None else after(layer, x)
            return self._joined(x) if layer + 1 == self.before else x

        return super().through_layers(x if self.before else self._joined(x), context, past, encoded, follow)

    def _joined(self, x: Tensor) -> Tensor:
        queries = in_dtype(wide(self.query.weight), x.dtype)[None]  # 1 Q D
        return torch.cat((x, queries.expand(x.shape[0], queries.shape[1], x.shape[2])), 1)

    def ties_between_layers(self) -> list[str]:
        return ["queries join between layers"]
