"""A decoder, such as GPT-2 or Llama."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from torch import Tensor, nn

import specs.model as spec
from zoo.components.attention import KeyValue
from zoo.components.embedding import Tokens
from zoo.components.pooling import TokenSequence, pool
from zoo.context import BuildContext
from zoo.generation.generate import How, Prompts, generate
from zoo.models.outputs import Outputs
from zoo.models.places import Places
from zoo.models.stack import Stack, past_length
from zoo.registry import build_component


class Decoder(nn.Module):
    """head(decoder(embedding(tokens))); every token attends to itself and those before it."""

    def __init__(self, spec: spec.Model) -> None:
        super().__init__()
        self.spec = spec
        assert spec.decoder is not None
        context = BuildContext.of(spec, "decoder")
        self.embedding: Tokens = build_component(spec.embedding_of(spec.decoder), context)  # type: ignore[assignment]
        self.decoder = Stack(spec.decoder, context.position_kind, context)
        self.head = build_component(spec.head, context.with_token(self.embedding.token))

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Sequence[KeyValue] | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        *,
        last_only: bool = False,
    ) -> Outputs:
        """input_ids: B T, attention_mask: B (P + T) with 1 for real tokens (default: all).

        past_key_values: per layer B G P K twice, as ``present_key_values`` of an earlier call returned them.
        position_ids: B T, with caches that do not grow: P is the number of their places, and each row's tokens go to
        these, ascending one by one; -1 is padding behind them, and attention_mask is not looked at.
        last_only: the head sees the last real token of each row alone, as if T were 1.
        """
        if position_ids is None:
            at = Places.behind(input_ids, past_length(past_key_values), attention_mask)
        else:
            at = Places.at(position_ids)
        x = self.embedding(input_ids, at.positions, token_type_ids)  # B T D
        x, present = self.decoder(x, at.positions, at.mask, past_key_values, start=at.start)
        tokens = TokenSequence(input_ids, at.real)
        if last_only:
            x = pool(x, tokens, "last")[:, None]  # B 1 D
        return Outputs(self.head(x, tokens), present)

    def generate(self, prompts: Prompts, max_new_tokens: int = 20, **how: Unpack[How]) -> list[list[int]]:
        """The tokens that follow each prompt, a list of ids: see :func:`zoo.generation.generate.generate`."""
        return generate(self, prompts, max_new_tokens, **how)
