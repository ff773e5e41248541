"""Positions that act in the attentions of a stack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specs.kinds.block import BlockParts
from specs.kinds.mixer import AttentionKind
from specs.kinds.position import NoPosition, PositionKind
from zoo.components.position import Position
from zoo.context import PositionContext, StackContext
from zoo.registry import build_component


def has_summaries(attention: AttentionKind) -> bool:
    """Whether an attention also reads block summaries."""
    return attention.summarized_tokens is not None


class StackPositions:
    """The position of a stack and the positions of single attentions: one module for equal specs, unless layers own it."""

    def __init__(self, blocks: Sequence[BlockParts], context: StackContext) -> None:
        self._kind = context.position_kind
        attentions = [block.attention for block in blocks if block.attention is not None]
        self._following = [attention for attention in attentions if self._own(attention) is None]
        heads = {attention.heads for attention in self._following}  # type: ignore[attr-defined]
        self._context = context
        self._heads = heads.pop() if len(heads) == 1 else None
        self._summarizing = [self._own(attention) for attention in attentions if has_summaries(attention)]
        self._built: list[tuple[PositionKind, int, Position]] = []

    def of_stack(self) -> Position:
        """The position of all attentions without their own."""
        acts = self._following and not self._kind.embedded
        summarized = any(map(has_summaries, self._following))
        position: Position = build_component(  # type: ignore[assignment]
            self._kind if acts else NoPosition(),
            PositionContext.within(self._context, heads=self._heads, summarized=summarized),
        )
        return position

    def of(self, block: BlockParts) -> Position | None:
        """The position of a block's attention, or None for the stack's."""
        kind = None if block.attention is None else self._own(block.attention)
        if kind is None:
            return None
        attention: Any = block.attention
        heads: int = attention.heads
        first = next((built for *key, built in self._built if key == [kind, heads]), None)
        if first is not None and not kind.owned_by_layers:
            return first
        shared = kind in self._summarizing and not kind.owned_by_layers
        position: Position = build_component(  # type: ignore[assignment]
            kind,
            PositionContext.within(
                self._context,
                heads=heads,
                head_width=attention.head_width(self._context.d_model),
                summarized=has_summaries(attention) or shared,
            ),
        )
        position.name = f"of layers with the same, {len(self._built) + 1}"
        if first is not None:
            position.share(first)
        self._built.append((kind, heads, position))
        return position

    def _own(self, attention: AttentionKind) -> PositionKind | None:
        """The position of an attention alone: its spec's, or the stack's if every layer has its own weights; or None."""
        stacks = self._kind if self._kind.owned_by_layers else None
        return attention.own_position or stacks
