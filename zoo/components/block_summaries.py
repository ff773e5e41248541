"""Sums of blocks of tokens, as all queries of an attention see them (Guo et al., 2021).

Shapes: batch B, query length T, key length S, blocks J = ceil(S / size), heads H, width D.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

import specs.kinds.block_summaries as spec
import specs.kinds.relative_bias as relative_bias
from specs.kinds.attention import GroupedQuery, MultiHead, MultiHeadShape, MultiQuery
from zoo import functional
from zoo.components.attention import KeyValue
from zoo.components.attention_variations import VariedSelfAttention, check_class
from zoo.components.linear import EmbeddingTable
from zoo.components.mixer import MixerContext, QueryKeyPositions, State
from zoo.components.position import Position
from zoo.components.relative_bias import RelativeBias
from zoo.context import BuildContext, LayerContext, PositionContext
from zoo.core.sharding import COLUMNS, Sharding
from zoo.registry import build_component, builds, extends


@builds(relative_bias.RelativeBias, when=lambda spec, context: context.summarized)
class SummarizingBias(RelativeBias):
    """A trained bias per distance bucket and head, and one per distance in blocks."""

    def __init__(self, spec: relative_bias.RelativeBias, context: PositionContext) -> None:
        super().__init__(spec, context)
        self.block_table = EmbeddingTable(spec.buckets, self.table.embedding_dim)

    def sharding(self) -> Sharding:
        """By heads."""
        plain = super().sharding()
        return replace(plain, cuts={**plain.cuts, "block_table": COLUMNS})

    def block_bias(self, queries: Tensor, blocks: Tensor, like: Tensor) -> Tensor:
        """As ``bias``, between the block of each query, (B or 1) T, and every block, 1 J -> (B or 1) H T J."""
        return self.looked_up(self.block_table, queries, blocks, like)


@dataclass(frozen=True)
class TokenBlocks:
    """Which tokens each block sums, (B or 1) J S, of 0 and 1, and what is added to the scores of queries with blocks,
    (B or 1) H T J."""

    members: Tensor
    bias: Tensor


def blocks_of(
    size: int, position: SummarizingBias, queries: Tensor, keys: Tensor, mask: Tensor | None, like: Tensor
) -> TokenBlocks:
    """The blocks of ``size`` tokens; tokens after the last full block belong to that, and padding to none.

    queries and keys: their positions, (B or 1) T and (B or 1) S, mask: B S with 1 for real tokens.
    """
    length = keys.shape[-1]
    full = (
        length // size if mask is None else mask.sum(1, keepdim=True) // size
    )  # B 1: the number of full blocks
    numbers = functional.positions_from(0, (length + (size - 1)) // size, like)[None]  # 1 J
    of_keys = _block(keys, size, full)  # (B or 1) S
    members = of_keys[:, None] == numbers[:, :, None]  # (B or 1) J S
    if mask is not None:
        members = members & (mask != 0)[:, None]
    bias = position.block_bias(_block(queries, size, full), numbers, like)  # (B or 1) H T J
    seen = (numbers < full)[:, None, None]  # (B or 1) 1 1 J
    return TokenBlocks(members.to(like.dtype), torch.where(seen, bias, functional.forbidden(like.dtype)))


def _block(positions: Tensor, size: int, full: Tensor | int) -> Tensor:
    """The block of each position, -1 where there is none: (B or 1) T -> (B or 1) T."""
    numbers, last = positions // size, full - 1
    return torch.where(numbers < last, numbers, last)


class BlockSummaries(nn.Module):
    """norm(sum of the tokens) for each block."""

    def __init__(self, spec: spec.BlockSummaries, context: BuildContext) -> None:
        super().__init__()
        self.size = spec.size
        self.norm = build_component(spec.norm, context)

    def forward(self, x: Tensor, members: Tensor) -> Tensor:
        """x: B S D, members: (B or 1) J S -> B J D."""
        return self.norm(members @ x)


@builds(
    MultiHead,
    GroupedQuery,
    MultiQuery,
    when=lambda spec, context: spec.block_summaries is not None,
)
class SummarizingAttention(VariedSelfAttention):
    """Attention to tokens, and to the sums of their blocks."""

    def __init__(self, spec: MultiHeadShape, context: LayerContext) -> None:
        super().__init__(spec, context)
        assert spec.block_summaries is not None
        self.scores_one_key = False
        self.summaries = BlockSummaries(spec.block_summaries, replace(context, d_model=context.reads))

    def shared(self, position: Position) -> Mapping[Hashable, Callable[[QueryKeyPositions], Any]]:
        assert isinstance(position, SummarizingBias)
        return {self._key(position): lambda positions: blocks_of(self.summaries.size, position, *positions)}

    def _key(self, position: Position) -> Hashable:
        return position.name, self.summaries.size

    def _blocks(self, context: MixerContext) -> TokenBlocks:
        shared = context.attention
        blocks: TokenBlocks = shared.shared[self._key(shared.position_of(self))]
        return blocks

    def past_and_new(
        self, x: Tensor, position: Position, context: MixerContext, past: State | None
    ) -> KeyValue:
        """Those of the tokens and, after them, of the blocks: B S D -> B G (S + J) K twice."""
        sums = self.summaries(x, self._blocks(context).members)  # B J D
        return super().past_and_new(torch.cat((x, sums), 1), position, context, past)

    def score_bias(self, x: Tensor, query: Tensor, key: Tensor, context: MixerContext) -> Tensor:
        bias = super().score_bias(x, query, key, context)
        assert bias is not None
        return torch.cat((bias, self._blocks(context).bias), -1)  # B H T (S + J)


@extends(MultiHeadShape)
def check_summaries(module: nn.Module, spec: MultiHeadShape, context: LayerContext) -> None:
    """Raise :class:`PluginError` if a plugin's attention would not see block summaries."""
    if spec.block_summaries is not None:
        check_class(module, SummarizingAttention, "block_summaries")
