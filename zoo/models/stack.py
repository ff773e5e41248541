"""The layers of an encoder or a decoder.

Shapes: batch B, query length T, key length S, past length P, width D.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

import specs.model.stack as spec
from specs.base.base import Component
from specs.kinds.block import BlockParts
from specs.kinds.position import NoPosition, PositionKind
from zoo import functional
from zoo.components.altup import Streams
from zoo.components.block_summaries import TokenBlocks, blocks_of
from zoo.components.layer_sum import WeightedLayerSum
from zoo.components.mixer import LENGTH, BiasKey, BlocksKey, MixerContext, State, StateTensor, check_state
from zoo.components.position import Position, RelativeBias
from zoo.components.sharing import SharedWeights
from zoo.context import BuildContext
from zoo.core.precision import in_dtype
from zoo.models.axes import Axes
from zoo.models.reach import Reach
from zoo.registry import build_component

AfterLayer = Callable[[int, Tensor], Tensor]
"""What goes on after a layer: from its index and its output, B T D, to B T D."""


class Stack(nn.Module):
    """Blocks in order, an optional final norm, an optional sum over the layers, and the position that acts inside attention.

    A shared block stands for several layers.
    """

    def __init__(self, spec: spec.Stack, position: PositionKind, context: BuildContext) -> None:
        super().__init__()
        blocks = spec.layer_blocks()
        attentions = [block.attention for block in blocks if block.attention is not None]
        following = [each for each in attentions if _own_position(each, position) is None]
        heads = {each.heads for each in following}  # type: ignore[attr-defined]
        context = replace(context, layers=len(blocks), heads=heads.pop() if len(heads) == 1 else None)
        self.causal = context.causal
        self.position: Position = build_component(  # type: ignore[assignment]
            position if following and not position.embedded else NoPosition(),
            replace(context, summarized=any(map(_summarizes, following))),
        )
        context = replace(context, altup=spec.altup)
        own_positions, shared = _OwnPositions(position, attentions, context), SharedWeights()
        layers: list[Any] = []
        for layer, (block, owner) in enumerate(zip(blocks, spec.owners(), strict=True)):
            if owner == layer:
                here = replace(context, layer=layer, position=own_positions.of(block))
                layers.append(shared.given(block, build_component(block, here)))
            else:
                layers.append(layers[owner])
        self.blocks = nn.ModuleList(layers)
        self.sources = spec.key_value_sources(context.d_model)
        self.attentions: dict[int, nn.Module] = {
            layer: block.attention for layer, block in enumerate(layers) if block.attention is not None
        }
        mixers = [mixer for block in layers for mixer in block.mixers]
        self._placed = not isinstance(position, NoPosition) or any(each.counts_tokens for each in mixers)
        self.views: list[BiasKey] = list(dict.fromkeys(map(self.view, self.attentions.values())))
        for mixer in mixers:
            if (width := getattr(mixer, "rotated_width", None)) is not None:
                self.position_of(mixer).prepare(width)
        self.streams = None if spec.altup is None else Streams(spec.altup, context)
        self.final_norm = build_component(blocks[-1].norm, context) if spec.ends_with_norm else nn.Identity()
        self.layer_sum = WeightedLayerSum(len(blocks)) if spec.weighted_layer_sum else None

    def forward(
        self,
        x: Tensor,
        positions: Tensor,
        mask: Tensor | None,
        past: Sequence[State] | None = None,
        encoded: Sequence[State] | None = None,
        encoder_mask: Tensor | None = None,
        real: Tensor | None = None,
        start: Tensor | None = None,
        reach: Reach | None = None,
        tokens: Tensor | None = None,
        axes: Axes | None = None,
        after: AfterLayer | None = None,
    ) -> tuple[Tensor, list[State]]:
        """x: B T D, positions: B T, mask: B S with S = P + T, past: the state of each layer.

        encoded: per layer the encoder's keys and values, encoder_mask: B and the encoder's length.
        real: B T, 1 for those of the new tokens that are not padding; None if all are real.
        start: B, the first slot of the new tokens, at ``positions``, in static caches of S slots.
        reach: of the new tokens in a causal stack, where some see tokens after them.
        tokens: B T, the new ones, for layers that embed them.
        axes: of the new tokens, where a position has several axes.
        after: takes the index and the output of each layer, and returns what goes on.
        Returns the last hidden state, B T D, and the new state of each layer.
        """
        if past is not None and isinstance(x, Tensor):  # not while it is traced
            check_state(self.states, past)
        if past is not None and mask is None and start is None and self._placed and not self._counts:
            raise ValueError(
                "the state of this model does not tell how many tokens came before: give attention_mask"
            )
        keys = _key_positions(x, mask, self.past_length(past), start)
        context = self.mixer_context(x, positions, keys, mask, encoder_mask, real, start, reach, axes)
        context = replace(context, tokens=tokens)
        x = x if self.streams is None else self.streams.spread(x)
        present: list[State] = []
        outputs: list[Tensor] = []
        for layer, block in enumerate(self.blocks):
            if self.layer_sum is not None:
                outputs.append(x)
            source = self.sources[layer]
            x, state = block(
                x,
                context if source is None else context.reusing(present[source]),
                None if past is None else past[layer],
                None if encoded is None else encoded[layer],
            )
            x = x if after is None else after(layer, x)
            present.append(state)
        x = self.final_norm(x if self.streams is None else self.streams.gathered(x))
        return x if self.layer_sum is None else self.layer_sum([*outputs, x]), present

    def mixer_context(
        self,
        x: Tensor,
        positions: Tensor,
        keys: Tensor,
        mask: Tensor | None,
        encoder_mask: Tensor | None = None,
        real: Tensor | None = None,
        start: Tensor | None = None,
        reach: Reach | None = None,
        axes: Axes | None = None,
    ) -> MixerContext:
        """The inputs that all mixers share; arguments as in ``forward``, and the positions of all keys, (B or 1) S."""
        like = in_dtype(x, next(self.parameters()).dtype)  # scores are in the dtype of queries and keys
        added = {position.name: position.bias(positions, keys, like) for position in self.positions}
        gated = {position.name: added.pop(position.name) for position in self.positions if position.gated}
        biases = self._biases(mask, positions, keys, like, added, reach, axes)
        cross_bias = functional.attention_bias(encoder_mask, None, None, None, like, causal=False)
        distances = {each.name: each.distances(positions, keys, like) for each in self.positions}
        rotated = positions if axes is None else axes.coordinates
        blocks = self._blocks(mask, positions, keys, like)
        return MixerContext(
            self.position, rotated, x, biases, distances, cross_bias, real, start, gated, blocks
        )

    @property
    def states(self) -> list[tuple[StateTensor, ...]]:
        """What each layer carries from call to call."""
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

    def position_of(self, mixer: nn.Module) -> Position:
        """The position that acts inside a mixer: its own or the stack's."""
        return getattr(mixer, "position", None) or self.position

    def view(self, attention: nn.Module) -> BiasKey:
        """The key of an attention's bias."""
        limits = (getattr(attention, name, None) for name in BiasKey._fields[1:])
        return BiasKey(self.position_of(attention).name, *limits)

    @property
    def positions(self) -> list[Position]:
        """The positions that act inside the attentions, each once."""
        every = map(self.position_of, self.attentions.values())
        return list({position.name: position for position in every}.values())

    def _biases(
        self,
        mask: Tensor | None,
        queries: Tensor,
        keys: Tensor,
        like: Tensor,
        added: Mapping[str, Tensor | None],
        reach: Reach | None,
        axes: Axes | None,
    ) -> dict[BiasKey, Tensor | None]:
        """The bias of the scores for each key, with what positions add: broadcast to B H T S, or None."""
        ahead = {} if reach is None else {"last": reach.last, "unlimited": reach.unlimited}

        def bias(key: BiasKey) -> Tensor | None:
            groups = None if axes is None else axes.groups(key.patch_window)
            together = {} if groups is None else {"groups": groups}
            return functional.attention_bias(
                mask,
                added.get(key.position),
                queries,
                keys,
                like,
                causal=self.causal,
                window=key.window,
                chunk=key.chunk,
                **ahead,
                **together,
            )

        return {key: bias(key) for key in self.views}

    def _blocks(
        self, mask: Tensor | None, queries: Tensor, keys: Tensor, like: Tensor
    ) -> dict[BlocksKey, TokenBlocks]:
        """The blocks of tokens whose sums attentions see."""
        found: dict[BlocksKey, TokenBlocks] = {}
        for attention in self.attentions.values():
            summaries = getattr(attention, "summaries", None)
            position = self.position_of(attention)
            if summaries is not None and isinstance(position, RelativeBias):
                key = BlocksKey(position.name, summaries.size)
                if key not in found:
                    found[key] = blocks_of(summaries.size, position, queries, keys, mask, like)
        return found


def _summarizes(attention: Component) -> bool:
    return getattr(attention, "block_summaries", None) is not None


def _own_position(mixer: Component, of_stack: PositionKind) -> PositionKind | None:
    """The position of a mixer alone: that of its spec, or the stack's where every layer has its own weights; or None."""
    return getattr(mixer, "position", None) or (of_stack if of_stack.owned_by_layers else None)


class _OwnPositions:
    """The positions of single attentions: one module for all with equal specs, unless layers own it."""

    def __init__(
        self, of_stack: PositionKind, attentions: Sequence[Component], context: BuildContext
    ) -> None:
        self._of_stack, self._context = of_stack, context
        self._summarizing = [_own_position(each, of_stack) for each in attentions if _summarizes(each)]
        self._built: list[tuple[PositionKind, int, Position]] = []

    def of(self, block: BlockParts) -> Position | None:
        """The position of a block's attention, or None for the stack's."""
        wanted = None if block.attention is None else _own_position(block.attention, self._of_stack)
        if wanted is None:
            return None
        attention: Any = block.attention
        heads: int = attention.heads
        for stated, told, built in self._built:
            if (stated, told) == (wanted, heads) and not wanted.owned_by_layers:
                return built
        position: Position = build_component(  # type: ignore[assignment]
            wanted,
            replace(
                self._context,
                heads=heads,
                head_width=attention.head_width(self._context.d_model),
                summarized=_summarizes(attention)
                or (wanted in self._summarizing and not wanted.owned_by_layers),
            ),
        )
        position.name = f"of layers with the same, {len(self._built) + 1}"
        self._built.append((wanted, heads, position))
        return position


def _key_positions(x: Tensor, mask: Tensor | None, past: int, start: Tensor | None) -> Tensor:
    """The positions of all tokens, cached ones included: B S or 1 S.  Only real tokens count, so padding shifts none."""
    if start is not None:
        return functional.positions_from(0, past, x)[None]
    length = past + x.shape[1]
    if mask is None:
        return functional.positions_from(0, length, x)[None]
    return functional.token_positions(mask, length)
