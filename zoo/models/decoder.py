"""A decoder, such as GPT-2 or Llama."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from torch import Tensor, nn

import specs.model.model as spec
from zoo.components.embedding import Tokens
from zoo.components.mixer import State
from zoo.components.pooling import TokenSequence, pool
from zoo.context import BuildContext
from zoo.generation.generate import GenerationOptions, Prompts, generate
from zoo.models.axes import Axes
from zoo.models.decoder_positions import DecoderPositions
from zoo.models.outputs import Outputs
from zoo.models.stack import AfterLayer, Stack
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
        past_key_values: Sequence[State] | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        *,
        last_only: bool = False,
    ) -> Outputs:
        """input_ids: B T, attention_mask: B (P + T) with 1 for real tokens (default: all).

        past_key_values: the state of each layer, as ``present_key_values`` of an earlier call returned it.
        position_ids: B T, selects static caches of P slots: each row writes its tokens to these slots, ascending by one,
        then -1 for padding; attention_mask is ignored.
        last_only: the head receives only the last real token of each row, as if T were 1.
        """
        at = self.positions(input_ids, attention_mask, past_key_values, position_ids)
        x = self.embedding(input_ids, at.positions, token_type_ids)  # B T D
        return self.decode(x, at, past_key_values, input_ids, last_only=last_only)

    def positions(
        self,
        new: Tensor,
        attention_mask: Tensor | None,
        past_key_values: Sequence[State] | None,
        position_ids: Tensor | None,
    ) -> DecoderPositions:
        """The positions of ``new`` tokens, B T or B T D; arguments as in ``forward``."""
        if position_ids is not None:
            return DecoderPositions.at(position_ids)
        return DecoderPositions.after(new, self.decoder.past_length(past_key_values), attention_mask)

    def decode(
        self,
        x: Tensor,
        at: DecoderPositions,
        past_key_values: Sequence[State] | None,
        input_ids: Tensor | None = None,
        *,
        last_only: bool = False,
        after: AfterLayer | None = None,
    ) -> Outputs:
        """x: embeddings, B T D; input_ids: B T, for heads that look for a token, and for layers that embed them.

        after: what goes on after each layer.
        """
        x, present = self.decoder(
            x,
            at.positions,
            at.mask,
            past_key_values,
            real=at.real,
            start=at.start,
            reach=at.reach,
            tokens=input_ids,
            axes=None if at.coordinates is None else Axes(at.coordinates),
            after=after,
        )
        tokens = TokenSequence(input_ids, at.real)
        if last_only:
            x = pool(x, tokens, "last")[:, None]  # B 1 D
        return Outputs(self.head(x, tokens), present)

    def generate(
        self, prompts: Prompts, max_new_tokens: int = 20, **options: Unpack[GenerationOptions]
    ) -> list[list[int]]:
        """The tokens that follow each prompt, a list of ids: see :func:`zoo.generation.generate.generate`."""
        return generate(self, prompts, max_new_tokens, **options)
