"""Token embeddings with image vectors among them: batch B, tokens T, images M, vectors per image V."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from exporters.preprocessing.packed import PackedImages
from exporters.runtime.exported import Exported
from exporters.runtime.graph import Floats, Ids, LoadedGraph, host_array
from exporters.runtime.model_inputs import model_inputs
from specs.base.errors import UserError, option_name
from specs.model.model import Model
from zoo.core.graph_names import COORDINATES, GRID, IMAGE_FEATURES

Images = Floats | PackedImages
"""Images of one size, M C H W, or of any size."""


class ImageEmbedder:
    """The graphs before the decoder of a vision-language model, loaded.

    Raises :class:`specs.base.errors.UserError` if the layout's client merges image vectors itself.
    """

    def __init__(self, exported: Exported, threads: int = 0) -> None:
        self.spec = exported.spec
        self.vision, self.embedding = exported.open(0, threads), exported.open(1, threads)
        if IMAGE_FEATURES not in self.embedding.inputs:
            raise UserError(
                f"Generating with images needs a graph that puts them among the tokens.\n"
                f"  value: {option_name('layout')} {exported.manifest.layout}\n"
                f"  Export it with the default {option_name('layout')}, or run it with its client."
            )
        sizes = self.embedding.inputs[IMAGE_FEATURES].dims[1:]
        self._none = np.zeros((0, *map(int, sizes)), np.float32)

    @property
    def graphs(self) -> tuple[LoadedGraph, LoadedGraph]:
        """The image graph and the embedding graph."""
        return self.vision, self.embedding

    def encode_images(self, images: Images) -> Floats:
        """Encode images: M V D, or V D for images of any size.

        Raises :class:`specs.base.errors.UserError` for inputs that are not images of the model.
        """
        pixels = images.pixels if isinstance(images, PackedImages) else images
        inputs, _ = model_inputs(self.vision, self.spec, self.spec.stack("image"), pixels)
        if isinstance(images, PackedImages):
            inputs[GRID] = images.grids
        return host_array(self.vision.run(inputs, {IMAGE_FEATURES: "cpu"})[IMAGE_FEATURES]).astype(np.float32)

    def embed(
        self, ids: Ids, vectors: Floats | None = None, grids: Ids | None = None, mask: Ids | None = None
    ) -> dict[str, Floats | Ids]:
        """The inputs of the decoder: embeddings, B T D; the number of later tokens that each token attends to, B T; and, if it
        takes them, the frame, row and column of each token, 3 B T, counted from the first token.

        ids and mask: B T, with a placeholder for every image vector; vectors: from ``encode_images``; grids: M 3, for images
        of any size.
        """
        inputs = {"input_ids": ids, IMAGE_FEATURES: self._none if vectors is None else vectors}
        if GRID in self.embedding.inputs:
            inputs[GRID] = np.zeros((0, 3), np.int64) if grids is None else grids
            inputs["attention_mask"] = np.ones_like(ids) if mask is None else mask
        if "token_type_ids" in self.embedding.inputs:
            inputs["token_type_ids"] = np.zeros_like(ids)
        outputs = self.embedding.run(inputs, dict.fromkeys(self.embedding.outputs, "cpu"))
        return {name: host_array(value) for name, value in outputs.items()}


class CallByCall:
    """Embeds tokens call by call: the first call has all images, and coordinates of later calls continue after the largest."""

    def __init__(self, embedder: ImageEmbedder, images: Images | None) -> None:
        self._embedder = embedder
        self._vectors = None if images is None else embedder.encode_images(images)
        self._grids = images.grids if isinstance(images, PackedImages) else None
        self._next: Ids | int = 0  # the next coordinate of each row, B 1

    def __call__(self, ids: Ids, mask: Ids) -> dict[str, Floats | Ids]:
        inputs = self._embedder.embed(ids, self._vectors, self._grids, mask)
        self._vectors = self._grids = None
        if COORDINATES in inputs:
            inputs[COORDINATES] = inputs[COORDINATES] + self._next
            self._next = np.where(mask == 1, inputs[COORDINATES].max(0), -1).max(1, keepdims=True) + 1
        return inputs


def with_placeholders(
    spec: Model,
    prompts: Sequence[Sequence[int]],
    images: int,
    prefix: Sequence[int] = (),
    image_ids: Sequence[list[int]] | None = None,
) -> list[list[int]]:
    """Expand prompts to one placeholder per image vector.

    A prompt has one placeholder for each image, or all placeholders already. A single prompt may have none: its images then
    precede the text, after the leading tokens of ``prefix``, the special tokens that a tokenizer puts before a text.
    ``image_ids``: the tokens of each image; by default only its placeholders.
    Raises :class:`specs.base.errors.UserError` for any other number of placeholders.
    """
    connector = spec.image_connector
    token = connector.token
    whole = image_ids or [[token] * spec.vectors_per_image] * images
    placeholders = sum(list(prompt).count(token) for prompt in prompts)
    if placeholders == sum(ids.count(token) for ids in whole):
        return [list(prompt) for prompt in prompts]
    if not placeholders and len(prompts) == 1:
        start, prompt = len(prefix), list(prompts[0])
        start = start if prompt[:start] == list(prefix) else 0
        return [[*prompt[:start], *chain(*whole), *prompt[start:]]]
    if placeholders != images:
        raise UserError(
            f"{spec.name} takes one placeholder for each image\n"
            f"  value: {placeholders} times token {token}, for {images} {'image' if images == 1 else 'images'}\n"
            f"  Write token {token} where an image belongs, once or {whole[0].count(token)} times."
        )
    following = iter(whole)
    return [
        [piece for part in prompt for piece in (next(following) if part == token else [part])]
        for prompt in prompts
    ]
