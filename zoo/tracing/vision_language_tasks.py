"""The graphs of a vision-language model: the image graph, the embedding graph, and the decoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from specs.model.model import Model
from zoo.context import StackContext
from zoo.core.graph_names import COORDINATES, EMBEDDED, GRID, IMAGE_FEATURES, TOKENS_AHEAD, VISION_ENCODER
from zoo.core.remembering import parts_key
from zoo.tracing.decoder_task import decoder_task, reader_key
from zoo.tracing.symbols import DerivedSize, Placeholder
from zoo.tracing.task import BATCH, IMAGES, PATCHES, VECTORS, Task, stack_inputs


def vision_language_tasks(model: Any, spec: Model, last_only: bool, cache_slots: int | None) -> list[Task]:
    """The image graph, the embedding graph, in which image vectors replace placeholders, and the decoder."""
    return [
        vision_task(spec),
        _embedding_task(spec, "embedding", images=True),
        decoder_task(model, spec, last_only, cache_slots, embedded=True),
    ]


def vision_language_tasks_apart(
    model: Any, spec: Model, last_only: bool, *, images_by_row: bool
) -> list[Task]:
    """:func:`vision_language_tasks` for clients that merge image vectors and token embeddings themselves."""
    return [
        _vision_task_by_row(spec) if images_by_row else vision_task(spec),
        _embedding_task(spec, "embed_tokens", images=False),
        decoder_task(model, spec, last_only, None, "decoder_model_merged", embedded=True),
    ]


def vision_language_tasks_by_ids(model: Any, spec: Model, last_only: bool) -> list[Task]:
    """:func:`vision_language_tasks` for a client that passes all image vectors as one matrix, and only embeddings and token ids
    to the decoder, which derives the attention of images from the ids."""
    return [
        _vision_task_in_one(spec),
        _embedding_task(spec, "embedding", images=True, in_one=True),
        decoder_task(model, spec, last_only, None, embedded=True, with_ids=True),
    ]


def image_inputs(spec: Model) -> tuple[Placeholder, ...]:
    """The inputs for the images of all rows, with their grids if images have any size."""
    inputs = stack_inputs(spec, spec.stack("image"), "")
    if spec.packs_images:
        return inputs
    return tuple(replace(placeholder, dims=(IMAGES, *placeholder.dims[1:])) for placeholder in inputs)


def image_sizes(spec: Model) -> dict[str, DerivedSize]:
    """The number of patches of images of any size, derived from the number of their vectors."""
    if not spec.packs_images:
        return {}
    joined = spec.image_connector.square**2
    return {PATCHES: DerivedSize(VECTORS, lambda vectors: joined * vectors)}


def vision_task(spec: Model) -> Task:
    """The image graph: the vectors of images."""
    inputs = image_inputs(spec)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return {IMAGE_FEATURES: model.encode_images(values[inputs[0].name], values.get(GRID))}

    contexts = (StackContext.of(spec, name) for name in ("image", "decoder"))
    about = parts_key(spec.stack("image"), spec.embedding_of(spec.stack("image")), spec.connector, *contexts)
    return Task(VISION_ENCODER, inputs, call, derived=image_sizes(spec), about=about)


def reading_task(spec: Model, features: Placeholder) -> Task:
    """The whole model after its image graph: tokens, and the vectors of images among them."""
    grid = [placeholder for placeholder in image_inputs(spec) if placeholder.name == GRID]
    inputs = (*stack_inputs(spec, spec.stack("decoder"), "sequence_length"), features, *grid)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        named = {placeholder.name: values[placeholder.name] for placeholder in inputs}
        return dict(model.read(image_features=named.pop(features.name), **named))

    return Task("decoder", inputs, call, about=reader_key(spec))


def _vision_task_by_row(spec: Model) -> Task:
    """:func:`vision_task` with images per row: B num_images channels height width -> B num_images V D."""
    (pixels,) = image_inputs(spec)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        images = values[pixels.name]
        return {IMAGE_FEATURES: model.encode_images(images.flatten(0, 1)).unflatten(0, images.shape[:2])}

    return Task(VISION_ENCODER, (replace(pixels, dims=(BATCH, *pixels.dims)),), call)


def _vision_task_in_one(spec: Model) -> Task:
    """:func:`vision_task` with the vectors of all images in one matrix: num_vectors D."""
    (pixels,) = image_inputs(spec)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return {IMAGE_FEATURES: model.encode_images(values[pixels.name]).flatten(0, 1)}

    return Task(VISION_ENCODER, (pixels,), call)


def _embedding_task(spec: Model, name: str, *, images: bool, in_one: bool = False) -> Task:
    """The embedding graph: token embeddings, with the vectors of ``images`` in place of placeholders, and the decoder's further
    inputs.

    ``in_one``: the vectors of all images are rows of one matrix, and the decoder reads token ids.
    """
    width, placed = spec.embedded_width, images and spec.rotates_by_axis
    inputs = [
        placeholder
        for placeholder in stack_inputs(spec, spec.stack("decoder"), "sequence_length")
        if placed or placeholder.name != "attention_mask"
    ]
    if images:
        vectors = (VECTORS,) if spec.packs_images or in_one else (IMAGES, spec.vectors_per_image)
        inputs.append(Placeholder(IMAGE_FEATURES, torch.float32, (*vectors, width)))
    if placed:
        inputs.append(Placeholder(GRID, torch.int64, (IMAGES, 3)))

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        ids = values["input_ids"]
        outputs = {EMBEDDED: model.embed(ids, values.get(IMAGE_FEATURES), values.get("token_type_ids"))}
        if not in_one and (ahead := model.ahead(ids)) is not None:
            outputs[TOKENS_AHEAD] = ahead
        if placed:
            outputs[COORDINATES] = model.coordinates(ids, values["attention_mask"], values[GRID])
        return outputs

    return Task(name, tuple(inputs), call, about=reader_key(spec, without_layers=True))
