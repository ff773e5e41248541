"""Sums of blocks of tokens, as all queries of an attention see them (Guo et al., 2021).

Shapes: batch B, query length T, key length S, blocks J = ceil(S / size), heads H, width D.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

import specs.kinds.block_summaries as spec
from zoo import functional
from zoo.components.position import RelativeBias
from zoo.context import BuildContext
from zoo.registry import build_component


@dataclass(frozen=True)
class TokenBlocks:
    """Which tokens each block sums, (B or 1) J S, of 0 and 1, and what is added to the scores of queries with blocks,
    (B or 1) H T J."""

    members: Tensor
    bias: Tensor


def blocks_of(
    size: int, position: RelativeBias, queries: Tensor, keys: Tensor, mask: Tensor | None, like: Tensor
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
