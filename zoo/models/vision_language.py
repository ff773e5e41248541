"""A decoder that reads the vectors of images among its tokens, such as LLaVA and SmolVLM.

Shapes: batch B, tokens T, width D; images M, vectors of an image V.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

import specs.model as spec
from specs.connector import ConnectorKind
from specs.embedding import Patches
from zoo import functional
from zoo.components.connector import Connector
from zoo.components.embedding import Embedding
from zoo.components.mixer import State
from zoo.context import BuildContext
from zoo.models.decoder import Decoder
from zoo.models.decoder_positions import DecoderPositions
from zoo.models.outputs import Outputs
from zoo.models.stack import Stack
from zoo.precision import wide
from zoo.registry import build_component


class VisionLanguage(Decoder):
    """A decoder in whose input the vectors of images replace the embeddings of placeholder tokens, in order.

    Without images it is the decoder alone.
    """

    def __init__(self, spec: spec.Model) -> None:
        super().__init__(spec)
        assert spec.image is not None
        images, connector = spec.embedding_of(spec.image), spec.connector
        assert isinstance(images, Patches)
        assert isinstance(connector, ConnectorKind)
        context = BuildContext.of(spec, "image")
        self.image_embedding: Embedding = build_component(images, context)  # type: ignore[assignment]
        self.image = Stack(spec.image, context.position_kind, context)
        between = replace(BuildContext.of(spec, "decoder"), encoder_width=context.d_model)
        self.connector: Connector = build_component(connector, between)  # type: ignore[assignment]
        self.side, self.placeholder = images.side, connector.token
        assert spec.decoder is not None
        self.bidirectional = spec.decoder.bidirectional

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Sequence[State] | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        pixel_values: Tensor | None = None,
        *,
        last_only: bool = False,
    ) -> Outputs:
        """As a decoder; pixel_values: M channels height width, with V placeholders among the tokens for each image.

        Tokens that see each other in both directions belong in one call: those of an image, or of the whole prompt.
        """
        seen = None if pixel_values is None else self.see(pixel_values)
        x = self.embed(input_ids, seen, token_type_ids)  # B T D
        at = self.positions(x, attention_mask, past_key_values, position_ids).seeing(self.ahead(input_ids))
        return self.decode(x, at, past_key_values, input_ids, last_only=last_only)

    def ahead(self, input_ids: Tensor) -> Tensor | None:
        """The number of tokens after each that are of the same image and seen, B T; None if none are."""
        return functional.rest_of_run(self.placeholder, input_ids) if self.bidirectional == "image" else None

    def positions(
        self,
        new: Tensor,
        attention_mask: Tensor | None,
        past_key_values: Sequence[State] | None,
        position_ids: Tensor | None,
    ) -> DecoderPositions:
        """As in a decoder; the tokens of a prompt see each other where the spec says so."""
        at = super().positions(new, attention_mask, past_key_values, position_ids)
        if self.bidirectional != "prompt":
            return at
        return at.with_prompt(at.first_call(self.decoder.past_length(past_key_values)))

    def see(self, pixel_values: Tensor) -> Tensor:
        """The vectors of images: M channels height width -> M V D."""
        return wide(self.connector(self.image_output(pixel_values), self.side))

    def image_output(self, pixel_values: Tensor) -> Tensor:
        """The last hidden state of the stack of images: M channels height width -> M N E."""
        mask, positions = self.image_embedding.mask_and_positions(pixel_values, None)
        x = self.image_embedding(pixel_values, positions)  # M N E
        x, _ = self.image(x, positions, mask)
        return x

    def embed(
        self, input_ids: Tensor, image_features: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """input_ids and token_type_ids: B T, image_features: from ``see`` -> B T D."""
        anywhere = functional.positions_from(0, input_ids.shape[1], input_ids)[None]  # read by no token
        x = self.embedding(input_ids, anywhere, token_type_ids)  # B T D
        if image_features is None:
            return x
        return functional.in_place_of(self.placeholder, input_ids, x, image_features)
