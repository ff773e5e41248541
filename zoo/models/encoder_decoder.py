"""An encoder with a decoder that attends to it, such as T5, Whisper or the original Transformer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar, Unpack, cast

from torch import Tensor

import specs.model.model as spec
from zoo.components.block import Block
from zoo.components.embedding import Embedding, Tokens
from zoo.components.mixer import State
from zoo.components.pooling import TokenSequence, pool
from zoo.context import StackContext
from zoo.generation.generate import GenerationOptions, Prompts, generate_from
from zoo.models.built_model import BuiltModel
from zoo.models.outputs import Outputs
from zoo.models.stack import EncoderOutput
from zoo.models.token_positions import TokenPositions
from zoo.models.varied_stack import stack_of
from zoo.registry import build_component


class EncoderDecoder(BuiltModel):
    """The decoder's tokens attend to earlier tokens and to all of the encoder's."""

    entries: ClassVar[tuple[str, ...]] = ("forward", "encode", "encoder_output", "decode", "generate")

    def __init__(self, spec: spec.Model) -> None:
        super().__init__()
        self.spec = spec
        context = StackContext.of(spec, "encoder")
        self.encoder_embedding: Embedding = build_component(  # type: ignore[assignment]
            spec.embedding_of(spec.stack("encoder")), context
        )
        self.encoder = stack_of(spec.stack("encoder"), context)
        context = StackContext.of(spec, "decoder")
        if not spec.embedding_of(spec.stack("decoder")).owns_table:
            context = context.with_token(self.encoder_embedding.token)
        self.decoder_embedding: Tokens = build_component(  # type: ignore[assignment]
            spec.embedding_of(spec.stack("decoder")), context
        )
        self.decoder = stack_of(spec.stack("decoder"), context)
        self.head = build_component(spec.head, context.with_token(self.decoder_embedding.token))

    def encode(
        self, inputs: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Outputs:
        """inputs: the inputs of the encoder's embedding, mostly token ids, B S.

        attention_mask (1 for real tokens; default: all) and token_type_ids (default: 0), for tokens only: B S.
        Returns last_hidden_state: B S D, and as ``present_key_values`` the keys and values that each decoder
        layer attends to, B G S K twice: they are projected here, once per sequence.
        """
        x = self.encoder_output(inputs, attention_mask, token_type_ids)
        return Outputs({"last_hidden_state": x}, self.keys_values(x))

    def encoder_output(
        self, inputs: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """The last hidden state of the encoder alone, B S D; inputs as in ``encode``."""
        mask, positions = self.encoder_embedding.mask_and_positions(inputs, attention_mask)  # B S
        x = self.encoder_embedding(inputs, positions, token_type_ids, attention_mask)  # B S D
        x, _ = self.encoder(x, TokenPositions.all(positions, mask))
        return x

    def keys_values(self, hidden: Tensor) -> list[State]:
        """The encoder's output as keys and values for each decoder layer: B S D -> B G S K twice."""
        blocks = cast("Iterable[Block]", self.decoder.blocks)
        return [
            block.cross_attention.keys_values(hidden) for block in blocks if block.cross_attention is not None
        ]

    def decode(
        self,
        decoder_input_ids: Tensor,
        encoded: Sequence[State],
        encoder_attention_mask: Tensor | None = None,
        past_key_values: Sequence[State] | None = None,
        decoder_attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        *,
        last_only: bool = False,
    ) -> Outputs:
        """decoder_input_ids: B T, encoded: from ``encode``, encoder_attention_mask: B S.

        past_key_values: the state of each layer, decoder_attention_mask: B (P + T) (default: all real).
        position_ids: B T, selects static caches, as in :class:`zoo.models.decoder.Decoder`.
        last_only: the head receives only the last real token of each row, as if T were 1.
        """
        if position_ids is None:
            past = self.decoder.past_length(past_key_values)
            tokens = TokenPositions.after(decoder_input_ids, past, decoder_attention_mask)
        else:
            tokens = TokenPositions.at(position_ids)
        x = self.decoder_embedding(decoder_input_ids, tokens.positions)  # B T D
        output = EncoderOutput(encoded, encoder_attention_mask)
        x, present = self.decoder(x, replace(tokens, ids=decoder_input_ids), past_key_values, output)
        sequence = TokenSequence(decoder_input_ids, tokens.real)
        if last_only:
            x = pool(x, sequence, "last")[:, None]  # B 1 D
        return Outputs(self.head(x, sequence), present)

    def forward(
        self,
        inputs: Tensor,
        decoder_input_ids: Tensor,
        attention_mask: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
    ) -> Outputs:
        """Encode and decode without a cache; arguments as in ``encode`` and ``decode``."""
        encoded = self.encode(inputs, attention_mask, token_type_ids)
        keys_values = encoded.present_key_values
        return self.decode(
            decoder_input_ids, keys_values, attention_mask, decoder_attention_mask=decoder_attention_mask
        )

    def generate(
        self,
        inputs: Prompts | Tensor,
        max_new_tokens: int = 20,
        *,
        start: int = 0,
        attention_mask: Tensor | None = None,
        **options: Unpack[GenerationOptions],
    ) -> list[list[int]]:
        """The tokens that the decoder generates for each input, beginning with ``start``: see
        :func:`zoo.generation.generate.generate_from`."""
        return generate_from(
            self, inputs, max_new_tokens, start=start, attention_mask=attention_mask, **options
        )
