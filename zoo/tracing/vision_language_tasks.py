"""The graphs of a decoder that reads images: one for images, one for embeddings, and the decoder itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from specs.model import Model
from zoo.graph_names import AHEAD, EMBEDDED, SEEN, VISION_ENCODER
from zoo.tracing.decoder_task import decoder_task
from zoo.tracing.symbols import Placeholder
from zoo.tracing.task import BATCH, Task, stack_inputs

IMAGES = "num_images"
"""The number of images, in all rows together or in each."""


IMAGE_TOKENS = "num_image_tokens"
"""The number of vectors of all images."""


def vision_language_tasks(
    model: Any, spec: Model, last_only: bool, cache_slots: int | None = None
) -> list[Task]:
    """The graph of images, that of embeddings, in which images take the place of placeholders, and the decoder."""
    return [
        vision_task(spec),
        _embedding_task(spec, "embedding", images=True),
        decoder_task(model, spec, last_only, cache_slots, embedded=True),
    ]


def vision_language_tasks_apart(
    model: Any, spec: Model, last_only: bool, *, images_by_row: bool = False
) -> list[Task]:
    """As ``vision_language_tasks``, for clients that put images among the embeddings of tokens themselves."""
    return [
        _vision_task_by_row(spec) if images_by_row else vision_task(spec),
        _embedding_task(spec, "embed_tokens", images=False),
        decoder_task(model, spec, last_only, None, "decoder_model_merged", embedded=True),
    ]


def vision_language_tasks_by_ids(model: Any, spec: Model, last_only: bool) -> list[Task]:
    """As ``vision_language_tasks``, for a client that passes the vectors of all images in one matrix, and no more than embeddings
    and token ids to the decoder, which finds in these what images see."""
    return [
        _vision_task_in_one(spec),
        _embedding_task(spec, "embedding", images=True, in_one=True),
        decoder_task(model, spec, last_only, None, embedded=True, with_ids=True),
    ]


def image_inputs(spec: Model) -> tuple[Placeholder, ...]:
    """The images of all rows together."""
    assert spec.image is not None
    inputs = stack_inputs(spec, spec.image, "")
    return tuple(replace(each, dims=(IMAGES, *each.dims[1:])) for each in inputs)


def vision_task(spec: Model) -> Task:
    """The vectors of images."""
    (pixels,) = image_inputs(spec)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return {SEEN: model.see(values[pixels.name])}

    return Task(VISION_ENCODER, (pixels,), call)


def _vision_task_by_row(spec: Model) -> Task:
    """As ``vision_task``, for as many images in each row: B num_images channels height width -> B num_images V D."""
    (pixels,) = image_inputs(spec)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        images = values[pixels.name]
        return {SEEN: model.see(images.flatten(0, 1)).unflatten(0, images.shape[:2])}

    return Task(VISION_ENCODER, (replace(pixels, dims=(BATCH, *pixels.dims)),), call)


def _vision_task_in_one(spec: Model) -> Task:
    """As ``vision_task``, with the vectors of all images in one matrix: num_image_tokens D."""
    (pixels,) = image_inputs(spec)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return {SEEN: model.see(values[pixels.name]).flatten(0, 1)}

    return Task(VISION_ENCODER, (pixels,), call)


def _embedding_task(spec: Model, name: str, *, images: bool, in_one: bool = False) -> Task:
    assert spec.decoder is not None
    width = spec.width_of(spec.decoder)
    tokens = tuple(
        each for each in stack_inputs(spec, spec.decoder, "sequence_length") if each.name != "attention_mask"
    )
    count = (IMAGE_TOKENS,) if in_one else (IMAGES, spec.vectors_per_image)
    seen = Placeholder(SEEN, torch.float32, (*count, width))

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        ids = values["input_ids"]
        embedded = {EMBEDDED: model.embed(ids, values.get(SEEN), values.get("token_type_ids"))}
        ahead = None if in_one else model.ahead(ids)
        return embedded if ahead is None else {**embedded, AHEAD: ahead}

    return Task(name, (*tokens, seen) if images else tokens, call)
