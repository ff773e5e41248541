"""Embeddings of tokens, with the vectors of images among them: batch B, tokens T, images M, vectors of an image V."""

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
from zoo.core.graph_names import GRID, SEEN

Images = Floats | PackedImages
"""Images of one size, M C H W, or of any."""


class ImageEmbedder:
    """The graphs before the decoder of a vision-language model, loaded.

    Raises :class:`specs.base.errors.UserError` where the client puts images among the tokens itself.
    """

    def __init__(self, exported: Exported, threads: int = 0) -> None:
        self.spec = exported.spec
        self.vision, self.embedding = exported.open(0, threads), exported.open(1, threads)
        if SEEN not in self.embedding.inputs:
            raise UserError(
                f"Generating with images needs a graph that puts them among the tokens.\n"
                f"  value: {option_name('layout')} {exported.manifest.layout}\n"
                f"  Export it with the default {option_name('layout')}, or run it with its client."
            )
        sizes = self.embedding.inputs[SEEN].dims[1:]
        self._none = np.zeros((0, *map(int, sizes)), np.float32)

    @property
    def graphs(self) -> tuple[LoadedGraph, LoadedGraph]:
        """The graph of images and that of embeddings."""
        return self.vision, self.embedding

    def see(self, images: Images) -> Floats:
        """The vectors of images, M V D, or of those of any size V D.

        Raises :class:`specs.base.errors.UserError` for inputs that are none.
        """
        assert self.spec.image is not None
        pixels = images.pixels if isinstance(images, PackedImages) else images
        inputs, _ = model_inputs(self.vision, self.spec, self.spec.image, pixels)
        if isinstance(images, PackedImages):
            inputs[GRID] = images.grids
        return host_array(self.vision.run(inputs, {SEEN: "cpu"})[SEEN]).astype(np.float32)

    def embed(
        self, ids: Ids, seen: Floats | None = None, grids: Ids | None = None, mask: Ids | None = None
    ) -> dict[str, Floats | Ids]:
        """The inputs of the decoder: embeddings, B T D, how many tokens each sees ahead, B T, and the frame, row and column of
        each, 3 B T, from the first of them on, where it takes those.

        ids and mask: B T, seen: from ``see``, with a placeholder for every vector, grids: M 3, of images of any size.
        """
        given = {"input_ids": ids, SEEN: self._none if seen is None else seen}
        if GRID in self.embedding.inputs:
            given[GRID] = np.zeros((0, 3), np.int64) if grids is None else grids
            given["attention_mask"] = np.ones_like(ids) if mask is None else mask
        if "token_type_ids" in self.embedding.inputs:
            given["token_type_ids"] = np.zeros_like(ids)
        outputs = self.embedding.run(given, dict.fromkeys(self.embedding.outputs, "cpu"))
        return {name: host_array(value) for name, value in outputs.items()}


def with_placeholders(
    spec: Model,
    prompts: Sequence[Sequence[int]],
    images: int,
    prefix: Sequence[int] = (),
    image_ids: Sequence[list[int]] | None = None,
) -> list[list[int]]:
    """Prompts with as many placeholders as their images have vectors.

    A prompt has one placeholder for each image, or all of them; a single prompt may have none, and begins with its images,
    after the tokens of ``prefix`` that begin it: the special tokens that a tokenizer puts before a text. ``image_ids`` are
    the tokens that stand for each image; by default its placeholders alone.
    Raises :class:`specs.base.errors.UserError` for any other number.
    """
    connector = spec.connector
    assert connector is not None
    token = connector.token
    whole = image_ids or [[token] * spec.vectors_per_image] * images
    stated = sum(list(prompt).count(token) for prompt in prompts)
    if stated == sum(ids.count(token) for ids in whole):
        return [list(prompt) for prompt in prompts]
    if not stated and len(prompts) == 1:
        start, prompt = len(prefix), list(prompts[0])
        start = start if prompt[:start] == list(prefix) else 0
        return [[*prompt[:start], *chain(*whole), *prompt[start:]]]
    if stated != images:
        raise UserError(
            f"{spec.name} takes one placeholder for each image\n"
            f"  value: {stated} times token {token}, for {images} {'image' if images == 1 else 'images'}\n"
            f"  Write token {token} where an image belongs, once or {whole[0].count(token)} times."
        )
    following = iter(whole)
    return [
        [each for given in prompt for each in (next(following) if given == token else [given])]
        for prompt in prompts
    ]
