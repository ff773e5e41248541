"""A decoder, such as GPT-2 or Llama."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Unpack

from torch import Tensor

import specs.model.model as spec
from zoo.components.embedding import Tokens
from zoo.components.mixer import State
from zoo.components.pooling import TokenSequence, pool
from zoo.context import StackContext
from zoo.generation.generate import GenerationOptions, Prompts, generate
from zoo.models.built_model import BuiltModel
from zoo.models.outputs import Outputs
from zoo.models.token_positions import TokenPositions
from zoo.models.varied_stack import stack_of
from zoo.registry import build_component


class Decoder(BuiltModel):
    """head(decoder(embedding(tokens))); every token attends to itself and those before it."""

    in_stages: ClassVar[bool] = True
    entries: ClassVar[tuple[str, ...]] = ("forward", "generate")

    def __init__(self, spec: spec.Model) -> None:
        super().__init__()
        self.spec = spec
        context = StackContext.of(spec, "decoder")
        self.embedding: Tokens = build_component(spec.embedding_of(spec.stack("decoder")), context)  # type: ignore[assignment]
        self.decoder = stack_of(spec.stack("decoder"), context)
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
        tokens = self.positions(input_ids, attention_mask, past_key_values, position_ids)
        x = self.embedding(input_ids, tokens.positions, token_type_ids)  # B T D
        return self.decode(x, tokens, past_key_values, input_ids, last_only=last_only)

    def positions(
        self,
        new: Tensor,
        attention_mask: Tensor | None,
        past_key_values: Sequence[State] | None,
        position_ids: Tensor | None,
    ) -> TokenPositions:
        """The positions of ``new`` tokens, B T or B T D; arguments as in ``forward``."""
        if position_ids is not None:
            return TokenPositions.at(position_ids)
        return TokenPositions.after(new, self.decoder.past_length(past_key_values), attention_mask)

    def decode(
        self,
        x: Tensor,
        tokens: TokenPositions,
        past_key_values: Sequence[State] | None,
        input_ids: Tensor | None = None,
        *,
        last_only: bool = False,
    ) -> Outputs:
        """x: embeddings, B T D; input_ids: B T, for heads and layers that read them."""
        x, present = self.decoder(x, replace(tokens, ids=input_ids), past_key_values)
        return self.scored(x, present, tokens, input_ids, last_only=last_only)

    def scored(
        self,
        x: Tensor,
        present: Sequence[State],
        tokens: TokenPositions,
        input_ids: Tensor | None,
        *,
        last_only: bool,
    ) -> Outputs:
        """The outputs of the head for the last hidden state, B T D; arguments as in ``decode``."""
        sequence = TokenSequence(input_ids, tokens.real)
        if last_only:
            x = pool(x, sequence, "last")[:, None]  # B 1 D
        return Outputs(self.head(x, sequence), present)

    def generate(
        self, prompts: Prompts, max_new_tokens: int = 20, **options: Unpack[GenerationOptions]
    ) -> list[list[int]]:
        """The tokens that follow each prompt, a list of ids: see :func:`zoo.generation.generate.generate`."""
        return generate(self, prompts, max_new_tokens, **options)
