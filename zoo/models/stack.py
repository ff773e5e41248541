"""The layers of an encoder or a decoder.

Shapes: batch B, query length T, key length S, past length P, width D.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

import specs.model.stack as spec
from specs.base.errors import PluginError
from specs.kinds.block import BlockParts
from zoo import functional
from zoo.components.mixer import (
    LENGTH,
    AttentionContext,
    AttentionMixer,
    BiasKey,
    MixerContext,
    QueryKeyPositions,
    State,
    StateTensor,
    check_state,
)
from zoo.components.position import Position
from zoo.components.sharing import SharedWeights
from zoo.context import BuildContext, LayerContext, StackContext
from zoo.core.precision import in_dtype
from zoo.models.own_positions import StackPositions
from zoo.models.token_positions import TokenPositions
from zoo.registry import build_component

AfterLayer = Callable[[int, Tensor], Tensor]
"""A hook: from the index of a layer and its output, B T D, to what the next layer receives."""


@dataclass(frozen=True)
class EncoderOutput:
    """The encoder's keys and values for each layer of a decoder, and its mask: B and the encoder's length, or None."""

    keys_values: Sequence[State]
    mask: Tensor | None = None


def _checked(attention: nn.Module) -> AttentionMixer:
    if not isinstance(attention, AttentionMixer):
        raise PluginError(
            f"{type(attention).__name__} builds a kind of attention, and does not extend AttentionMixer\n"
            "  Extend zoo.components.mixer.AttentionMixer, or register the kind in the slot mixer."
        )
    return attention


class Stack(nn.Module):
    """Blocks in order, an optional final norm, and the position that acts inside attention.

    A shared block stands for several layers.
    """

    def __init__(self, spec: spec.Stack, context: StackContext) -> None:
        super().__init__()
        blocks = spec.layer_blocks()
        positions, shared = StackPositions(blocks, context), SharedWeights()
        in_layer = LayerContext.within(context, layers=len(blocks))
        self.causal = context.causal
        self.position = positions.of_stack()
        layers: list[Any] = []
        for layer, (block, owner) in enumerate(zip(blocks, spec.owners(), strict=True)):
            if owner == layer:
                built = self.built_block(spec, block, replace(in_layer, layer=layer))
                if (position := positions.of(block)) is not None:
                    built.attention.position = position  # type: ignore[union-attr]
                layers.append(shared.given(block, built))
            else:
                layers.append(layers[owner])
        self.blocks = nn.ModuleList(layers)
        self.attentions: dict[int, AttentionMixer] = {
            layer: _checked(block.attention)
            for layer, block in enumerate(layers)
            if block.attention is not None
        }
        counting = any(mixer.counts_tokens for block in layers for mixer in block.mixers)
        self._placed = counting or not context.position_kind.is_none
        self.views: list[BiasKey] = list(dict.fromkeys(map(self.view, self.attentions.values())))
        for attention in self.attentions.values():
            self.position_of(attention).prepare(attention.rotated_width)
        self.final_norm = nn.Identity() if spec.end_norm is None else build_component(spec.end_norm, context)

    def built_block(self, spec: spec.Stack, block: BlockParts, context: BuildContext) -> nn.Module:
        """The module of a block."""
        return build_component(block, context)

    def forward(
        self,
        x: Tensor,
        tokens: TokenPositions,
        past: Sequence[State] | None = None,
        encoded: EncoderOutput | None = None,
        after: AfterLayer | None = None,
    ) -> tuple[Tensor, list[State]]:
        """x: B T D, past: the state of each layer -> the last hidden state, B T D, and the new state of each layer."""
        self._check(x, tokens, past)
        keys = tokens.keys(x, self.past_length(past))
        context = self.mixer_context(x, tokens, keys, None if encoded is None else encoded.mask)
        x, present = self.through_layers(x, context, past, encoded, after)
        return self.final_norm(x), present

    def through_layers(
        self,
        x: Tensor,
        context: MixerContext,
        past: Sequence[State] | None,
        encoded: EncoderOutput | None,
        after: AfterLayer | None,
    ) -> tuple[Tensor, list[State]]:
        """The output of the last layer, B T D, and the new state of each."""
        present: list[State] = []
        for layer, block in enumerate(self.blocks):
            x, state = block(
                x,
                self.layer_context(layer, context, present),
                None if past is None else past[layer],
                None if encoded is None else encoded.keys_values[layer],
            )
            x = x if after is None else after(layer, x)
            present.append(state)
        return x, present

    def layer_context(self, layer: int, context: MixerContext, present: Sequence[State]) -> MixerContext:
        """The context of one layer, given the context of all layers and the states of the layers before it."""
        return context

    def mixer_context(
        self, x: Tensor, tokens: TokenPositions, keys: Tensor, encoder_mask: Tensor | None = None
    ) -> MixerContext:
        """The inputs that all mixers share.  x: B T D, keys: the positions of all keys, (B or 1) S, encoder_mask: B and the encoder's
        length."""
        like = in_dtype(x, next(self.parameters()).dtype)  # scores are in the dtype of queries and keys
        added = {position.name: position.bias(tokens.positions, keys, like) for position in self.positions}
        biases = {
            key: tokens.bias(key, added[key.position], keys, like, causal=self.causal) for key in self.views
        }
        cross_bias = functional.attention_bias(encoder_mask, None, None, None, like, causal=False)
        places = QueryKeyPositions(tokens.positions, keys, tokens.mask, like)
        shared: dict[Hashable, Any] = {}
        for attention in self.attentions.values():
            for name, compute in attention.shared(self.position_of(attention)).items():
                if name not in shared:
                    shared[name] = compute(places)
        attending = AttentionContext(self.position, biases, cross_bias, shared, tokens.start)
        return MixerContext(tokens.rotated, tokens.real, x, tokens.ids, attending)

    def _check(self, x: Tensor, tokens: TokenPositions, past: Sequence[State] | None) -> None:
        if past is None:
            return
        if isinstance(x, Tensor):  # not while it is traced
            check_state(self.states, past)
        if tokens.mask is None and tokens.start is None and self._placed and not self._counts:
            raise ValueError(
                "the state of this model does not tell how many tokens came before: give attention_mask"
            )

    @property
    def states(self) -> list[tuple[StateTensor, ...]]:
        """The state of each layer from call to call."""
        return [block.state for block in self.blocks]  # type: ignore[misc]

    @property
    def _counts(self) -> bool:
        """Whether the state tells how many tokens came before."""
        return any(tensor.grows for state in self.states for tensor in state)

    def past_length(self, past: Sequence[State] | None) -> int:
        """The number of tokens in a growing cache, or of slots in a static one; 0 where no state has a length."""
        if past is None:
            return 0
        for declared, state in zip(self.states, past, strict=True):
            for tensor, values in zip(declared, state, strict=True):
                if tensor.grows:
                    return values.shape[1 + tensor.dims.index(LENGTH)]
        return 0

    def position_of(self, attention: AttentionMixer) -> Position:
        """The position that acts inside an attention: its own or the stack's."""
        return attention.position or self.position

    def view(self, attention: AttentionMixer) -> BiasKey:
        """The key of an attention's bias."""
        return attention.bias_key(self.position_of(attention))

    @property
    def positions(self) -> list[Position]:
        """The positions that act inside the attentions, each once."""
        every = map(self.position_of, self.attentions.values())
        return list({position.name: position for position in every}.values())

    def first_stream(self, x: Tensor) -> Tensor:
        """The stream of width D of what layers pass on: B T ... -> B T D."""
        return x

    def reused_layers(self) -> set[int]:
        """The layers whose caches later layers reuse: none."""
        return set()

    sums_layers = False
    """Whether the output is a sum over the layers."""

    def ties_between_layers(self) -> list[str]:
        """Dependencies between layers, for messages: none."""
        return []


def stacks_of(model: nn.Module) -> dict[str, Stack]:
    """The stacks of a model by name."""
    return {name: stack for name, stack in model.named_children() if isinstance(stack, Stack)}
