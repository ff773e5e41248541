"""A decoder that reads the vectors of images among its tokens, such as LLaVA and SmolVLM.

Shapes: batch B, tokens T, width D; images M, vectors of an image V; patches of images of any size N, values of a patch W.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor

import specs.model.model as spec
from zoo import functional
from zoo.components.connector import Connector, deep_connectors
from zoo.components.embedding import Embedding
from zoo.components.mixer import State
from zoo.context import StackContext
from zoo.core.precision import wide
from zoo.models.decoder import Decoder
from zoo.models.image_positions import ImagePositions, PatchPositions
from zoo.models.outputs import Outputs
from zoo.models.token_positions import TokenPositions
from zoo.models.varied_stack import stack_of
from zoo.registry import build_component


class VisionLanguage(Decoder):
    """A decoder in whose input the vectors of images replace the embeddings of placeholder tokens, in order.

    Without images it is the decoder alone. Images of one size come as M channels height width, and those of any size as the
    patches of all, N W, with the frames, rows and columns of each, M 3.
    """

    in_stages: ClassVar[bool] = False
    entries: ClassVar[tuple[str, ...]] = ("forward", "generate", "embed", "encode_images", "image_output")

    def __init__(self, spec: spec.Model) -> None:
        super().__init__(spec)
        images, connector = spec.embedding_of(spec.stack("image")), spec.image_connector
        context = StackContext.of(spec, "image")
        self.image_embedding: Embedding = build_component(images, context)  # type: ignore[assignment]
        self.image = stack_of(spec.stack("image"), context)
        between = replace(StackContext.of(spec, "decoder"), encoder_width=context.d_model)
        self.connector: Connector = build_component(connector, between)  # type: ignore[assignment]
        self.deep_connectors = deep_connectors(connector, between)
        self.deep_layers = connector.deepstack.layers if connector.deepstack else ()
        self.side = None if images.patch_grid is None else images.patch_grid.rows
        self.square, self.placeholder = connector.square, connector.token
        self.rotates_by_axis = spec.rotates_by_axis
        decoder = spec.stack("decoder")
        self.bidirectional, self.sees_prompt = decoder.bidirectional, decoder.sees_prompt

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Sequence[State] | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        pixel_values: Tensor | None = None,
        image_grid_thw: Tensor | None = None,
        *,
        last_only: bool = False,
    ) -> Outputs:
        """As a decoder; pixel_values: M channels height width, with V placeholders among the tokens for each image.

        Images of any size: pixel_values N W, image_grid_thw M 3, and placeholders for each square of patches.  position_ids may
        then be frame, row and column of each token, 3 B T, and must be where the cache holds images: see ``coordinates``.
        Tokens that see each other in both directions belong in one call: those of an image, or of the whole prompt.
        """
        seen = None if pixel_values is None else self.encode_images(pixel_values, image_grid_thw)
        return self.read(
            input_ids, attention_mask, past_key_values, token_type_ids, position_ids, seen, image_grid_thw,
            last_only=last_only,
        )  # fmt: skip

    def read(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Sequence[State] | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        image_features: Tensor | None = None,
        image_grid_thw: Tensor | None = None,
        *,
        last_only: bool = False,
    ) -> Outputs:
        """As ``forward``, with the vectors of images, from ``encode_images``."""
        x = self.embed(input_ids, image_features, token_type_ids)  # B T D
        if position_ids is None and image_grid_thw is not None and self.rotates_by_axis:
            position_ids = self.coordinates(input_ids, attention_mask, image_grid_thw)
        by_axis = position_ids is not None and position_ids.ndim == 3
        slots, coordinates = (None, position_ids) if by_axis else (position_ids, None)
        tokens = self.positions(x, attention_mask, past_key_values, slots).with_lookahead(
            self.ahead(input_ids)
        )
        tokens = tokens.along(coordinates)
        return self.decode(x, tokens, past_key_values, input_ids, last_only=last_only)

    def ahead(self, input_ids: Tensor) -> Tensor | None:
        """The number of tokens after each that are of the same image and seen, B T; None if none are."""
        return functional.rest_of_run(self.placeholder, input_ids) if self.bidirectional == "image" else None

    def coordinates(self, input_ids: Tensor, attention_mask: Tensor | None, image_grid_thw: Tensor) -> Tensor:
        """Frame, row and column of each token of a first call, 3 B T; the tokens of later calls have the number after the
        largest, and so on, three times.

        input_ids: B T, attention_mask: B T, or of which the last T count, image_grid_thw: M 3.
        """
        if attention_mask is None:
            mask = torch.ones_like(input_ids)
        else:
            mask = functional.last(attention_mask, input_ids.shape[1])
        return functional.image_coordinates(self.placeholder, input_ids, mask, image_grid_thw, self.square)

    def positions(
        self,
        new: Tensor,
        attention_mask: Tensor | None,
        past_key_values: Sequence[State] | None,
        position_ids: Tensor | None,
    ) -> ImagePositions:
        """As in a decoder; the tokens of a prompt see each other if the spec says so."""
        if position_ids is None:
            past = self.decoder.past_length(past_key_values)
            tokens = ImagePositions.after(new, past, attention_mask)
        else:
            tokens = ImagePositions.at(position_ids)
        if not self.sees_prompt:
            return tokens
        return self.in_prompt(tokens, tokens.first_call(self.decoder.past_length(past_key_values)))

    def in_prompt(self, tokens: ImagePositions, length: Tensor) -> ImagePositions:
        """The positions of tokens in a prompt, which see each other.  length: the number of tokens of the prompt, (B or 1) 1."""
        return tokens.with_prompt(length, both_sides=self.bidirectional == "windows")

    def decode(
        self,
        x: Tensor,
        tokens: TokenPositions,
        past_key_values: Sequence[State] | None,
        input_ids: Tensor | None = None,
        *,
        last_only: bool = False,
    ) -> Outputs:
        """As a decoder; x: from ``embed``, whose parts after the first are added after the first layers."""
        x, *deep = x.chunk(1 + len(self.deep_layers), -1) if self.deep_layers else (x,)  # B T D each

        def add(layer: int, x: Tensor) -> Tensor:
            return x + deep[layer] if layer < len(deep) else x

        x, present = self.decoder(x, replace(tokens, ids=input_ids), past_key_values, after=add)
        return self.scored(x, present, tokens, input_ids, last_only=last_only)

    def encode_images(self, pixel_values: Tensor, image_grid_thw: Tensor | None = None) -> Tensor:
        """The vectors of images: M channels height width -> M V D; images of any size, N W and M 3 -> V D for all images.

        With DeepStack, each vector is followed by its features for the first layers of the decoder: V (1 + deep) D. A norm of
        the embedding is of these vectors too.
        """
        if image_grid_thw is None:
            x = self.connector(self.image_output(pixel_values), self.side)  # M V D
            return wide(self.embedding.norm(wide(x)))
        deep: dict[int, Tensor] = {}
        x = self.connector(self.image_output(pixel_values, image_grid_thw, deep), None)  # 1 V D
        x = self.embedding.norm(wide(x))
        added = (
            connector(deep[layer], None)
            for layer, connector in zip(self.deep_layers, self.deep_connectors, strict=True)
        )
        return wide(torch.cat((x, *added), -1)[0] if self.deep_layers else x[0])

    def image_output(
        self,
        pixel_values: Tensor,
        image_grid_thw: Tensor | None = None,
        deep: dict[int, Tensor] | None = None,
    ) -> Tensor:
        """The last hidden state of the stack of images: M channels height width -> M N E, or N W and M 3 -> 1 N E.

        ``deep`` receives the outputs of the layers whose vectors are added after layers of the decoder.
        """
        if image_grid_thw is not None:
            return self._packed_output(pixel_values, image_grid_thw, {} if deep is None else deep)
        mask, positions = self.image_embedding.mask_and_positions(pixel_values, None)
        x = self.image_embedding(pixel_values, positions)  # M N E
        x, _ = self.image(x, TokenPositions(positions, mask=mask))
        return x

    def _packed_output(self, pixel_values: Tensor, image_grid_thw: Tensor, deep: dict[int, Tensor]) -> Tensor:
        """The patches of every image see the patches of the same frame: N W and M 3 -> 1 N E."""
        places = functional.packed_places(image_grid_thw, pixel_values, self.square)  # 1 N each
        x = self.image_embedding(pixel_values, places.coordinates)  # 1 N E

        def keep(layer: int, x: Tensor) -> Tensor:
            if layer in self.deep_layers:
                deep[layer] = x
            return x

        x, _ = self.image(x, PatchPositions.of(x, places), after=keep)
        return x

    def embed(
        self, input_ids: Tensor, image_features: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """input_ids and token_type_ids: B T, image_features: from ``see`` -> B T D, or B T (1 + deep) D, of tokens with zeros to
        add."""
        anywhere = functional.positions_from(0, input_ids.shape[1], input_ids)[None]  # read by no token
        x = wide(self.embedding(input_ids, anywhere, token_type_ids))  # B T D
        if self.deep_layers:
            x = torch.cat((x, *(x * 0.0 for _ in self.deep_layers)), -1)
        if image_features is None:
            return x
        return functional.in_place_of(self.placeholder, input_ids, x, image_features)
