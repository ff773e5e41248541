"""The layers of an encoder or a decoder.

Shapes: batch B, query length T, key length S, past length P, width D, key-value heads G, head width K.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor, nn

import specs.stack as spec
from specs.position import NoPosition, PositionKind
from zoo import functional
from zoo.components.attention import KeyValue, Scope
from zoo.components.position import Position
from zoo.context import BuildContext
from zoo.registry import build_component


class Stack(nn.Module):
    """Blocks in order, then a norm where the spec has one; and the position that acts inside attention."""

    def __init__(self, spec: spec.Stack, position: PositionKind, context: BuildContext) -> None:
        super().__init__()
        blocks = spec.layer_blocks()
        heads = {block.attention.heads for block in blocks}  # type: ignore[attr-defined]
        context = replace(context, layers=len(blocks), heads=heads.pop() if len(heads) == 1 else None)
        self.causal = context.causal
        self.position: Position = build_component(  # type: ignore[assignment]
            NoPosition() if position.embedded else position, context
        )
        self.blocks = nn.ModuleList(
            build_component(block, replace(context, layer=layer)) for layer, block in enumerate(blocks)
        )
        self.final_norm = build_component(blocks[-1].norm, context) if spec.ends_with_norm else nn.Identity()

    def forward(
        self,
        x: Tensor,
        positions: Tensor,
        mask: Tensor | None,
        past: Sequence[KeyValue] | None = None,
        encoded: Sequence[KeyValue] | None = None,
        encoder_mask: Tensor | None = None,
    ) -> tuple[Tensor, list[KeyValue]]:
        """x: B T D, positions: B T, mask: B S with S = P + T, past: per layer B G P K twice.

        encoded: per layer the encoder's keys and values, encoder_mask: B and the encoder's length.
        Returns the last hidden state, B T D, and per layer the keys and values so far, B G S K twice.
        """
        query_length = x.shape[1]
        key_length = query_length + past_length(past)
        position_bias = self.position.bias(query_length, key_length, x)
        bias = functional.attention_bias(mask, position_bias, query_length, key_length, x, causal=self.causal)
        cross_bias = functional.attention_bias(encoder_mask, None, 0, 0, x, causal=False)
        scope = Scope(self.position, positions, bias, cross_bias)
        present = []
        for layer, block in enumerate(self.blocks):
            x, key_value = block(
                x, scope, None if past is None else past[layer], None if encoded is None else encoded[layer]
            )
            present.append(key_value)
        return self.final_norm(x), present


def past_length(past: Sequence[KeyValue] | None) -> int:
    """How many tokens a cache holds."""
    return 0 if past is None else past[0][0].shape[2]
