"""The layers of an encoder or a decoder.

Shapes: batch B, query length T, key length S, past length P, width D, key-value heads G, head width K.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor, nn

import specs.stack as spec
from specs.block import BlockParts
from specs.position import NoPosition, PositionKind
from zoo import functional
from zoo.components.attention import KeyValue, Scope, View
from zoo.components.position import Position
from zoo.context import BuildContext
from zoo.precision import in_dtype
from zoo.registry import build_component


class Stack(nn.Module):
    """Blocks in order, then a norm where the spec has one; and the position that acts inside attention.

    A block may stand at several places, as its spec shares it.
    """

    def __init__(self, spec: spec.Stack, position: PositionKind, context: BuildContext) -> None:
        super().__init__()
        blocks = spec.layer_blocks()
        following = [block for block in blocks if _own_position(block) is None]
        heads = {block.attention.heads for block in following}  # type: ignore[attr-defined]
        context = replace(context, layers=len(blocks), heads=heads.pop() if len(heads) == 1 else None)
        self.causal = context.causal
        self.position: Position = build_component(  # type: ignore[assignment]
            position if following and not position.embedded else NoPosition(), context
        )
        own_positions = _OwnPositions(context)
        layers: list[nn.Module] = []
        for layer, (block, owner) in enumerate(zip(blocks, spec.owners(), strict=True)):
            if owner == layer:
                here = replace(context, layer=layer, position=own_positions.of(block))
                layers.append(build_component(block, here))
            else:
                layers.append(layers[owner])
        self.blocks = nn.ModuleList(layers)
        self.views: list[View] = list(dict.fromkeys(self.view(block.attention) for block in layers))
        for module in layers:
            if (width := getattr(module.attention, "rotated_width", None)) is not None:
                self.position_of(module.attention).prepare(width)
        self.final_norm = build_component(blocks[-1].norm, context) if spec.ends_with_norm else nn.Identity()

    def forward(
        self,
        x: Tensor,
        positions: Tensor,
        mask: Tensor | None,
        past: Sequence[KeyValue] | None = None,
        encoded: Sequence[KeyValue] | None = None,
        encoder_mask: Tensor | None = None,
        start: Tensor | None = None,
    ) -> tuple[Tensor, list[KeyValue]]:
        """x: B T D, positions: B T, mask: B S with S = P + T, past: per layer B G P K twice.

        encoded: per layer the encoder's keys and values, encoder_mask: B and the encoder's length.
        start: B, where the past has S places of which the new tokens, at ``positions``, get those from there on.
        Returns the last hidden state, B T D, and per layer the keys and values so far, B G S K twice.
        """
        keys = _key_positions(x, mask, past_length(past), start)
        scope = self.scope(x, positions, keys, mask, encoder_mask, start)
        present = []
        for layer, block in enumerate(self.blocks):
            x, key_value = block(
                x, scope, None if past is None else past[layer], None if encoded is None else encoded[layer]
            )
            present.append(key_value)
        return self.final_norm(x), present

    def scope(
        self,
        x: Tensor,
        positions: Tensor,
        keys: Tensor,
        mask: Tensor | None,
        encoder_mask: Tensor | None = None,
        start: Tensor | None = None,
    ) -> Scope:
        """What the attentions of all layers share: inputs as in ``forward``, and the positions of all keys, (B or 1) S.

        Only the device and the dtype of x matter.
        """
        like = in_dtype(x, next(self.parameters()).dtype)  # scores are in the dtype of queries and keys
        biases = self._biases(mask, positions, keys, like)
        cross_bias = functional.attention_bias(encoder_mask, None, None, None, like, causal=False)
        return Scope(self.position, positions, biases, cross_bias, start)

    def position_of(self, attention: nn.Module | Tensor) -> Position:
        """The position that acts inside an attention; not every kind has its own."""
        return getattr(attention, "position", None) or self.position

    def view(self, attention: nn.Module | Tensor) -> View:
        """The position, by its name, and the window of an attention; not every kind has one."""
        return self.position_of(attention).name, getattr(attention, "window", None)

    @property
    def positions(self) -> list[Position]:
        """Those that act inside the attentions, each once."""
        every = [self.position_of(block.attention) for block in self.blocks]
        return list({position.name: position for position in every}.values())

    def _biases(
        self, mask: Tensor | None, queries: Tensor, keys: Tensor, like: Tensor
    ) -> dict[View, Tensor | None]:
        """What the attentions with each view add to their scores: broadcast to B H T S, or None."""
        added = {position.name: position.bias(queries, keys, like) for position in self.positions}
        return {
            (position, window): functional.attention_bias(
                mask, added[position], queries, keys, like, causal=self.causal, window=window
            )
            for position, window in self.views
        }


def _own_position(block: BlockParts) -> PositionKind | None:
    """The position that a block's attention has of its own."""
    return getattr(block.attention, "position", None)


class _OwnPositions:
    """The positions that attentions have of their own: one module for all attentions that say the same."""

    def __init__(self, context: BuildContext) -> None:
        self._context = context
        self._built: list[tuple[PositionKind, int, Position]] = []

    def of(self, block: BlockParts) -> Position | None:
        """The position of a block's attention, or None where it follows the stack's."""
        wanted = _own_position(block)
        if wanted is None:
            return None
        heads: int = block.attention.heads  # type: ignore[attr-defined]
        for stated, told, built in self._built:
            if (stated, told) == (wanted, heads):
                return built
        position: Position = build_component(wanted, replace(self._context, heads=heads))  # type: ignore[assignment]
        position.name = f"of layers with the same, {len(self._built) + 1}"
        self._built.append((wanted, heads, position))
        return position


def _key_positions(x: Tensor, mask: Tensor | None, past: int, start: Tensor | None) -> Tensor:
    """The positions of all tokens so far: B S or 1 S.  Real tokens count, so that padding moves none of them."""
    if start is not None:
        return functional.positions_from(0, past, x)[None]
    length = past + x.shape[1]
    if mask is None:
        return functional.positions_from(0, length, x)[None]
    return functional.token_positions(mask, length)


def past_length(past: Sequence[KeyValue] | None) -> int:
    """How many tokens a cache holds, or has places for."""
    return 0 if past is None else past[0][0].shape[2]
