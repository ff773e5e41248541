"""The tasks of a model: its deployed graphs, and its training pass.

Each is a plain call of the model, so that tracing it and running it in PyTorch are the same thing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specs.model.model import Model
from zoo.functional.numbered import TOKENS_PER_LABEL
from zoo.tracing.decoder_task import decoder_task
from zoo.tracing.dual_encoder_tasks import (
    Outputs,
    dual_encoder_parts,
    dual_encoder_tasks,
    whole_task,
)
from zoo.tracing.encoder_decoder_tasks import (
    encode_alone_task,
    encode_task,
    encoder_part,
    first_decoder_task,
    merged_decoder_task,
    next_decoder_task,
    projecting_decoder_task,
    training_decoder_part,
)
from zoo.tracing.symbols import DerivedSize, Placeholder
from zoo.tracing.task import (
    LABELS,
    SPANS,
    WORDS,
    Task,
    derived_sizes,
    encoder_inputs,
    ids_input,
    stack_inputs,
    word_inputs,
)
from zoo.tracing.tracer import GraphCall
from zoo.tracing.vision_language_tasks import (
    image_inputs,
    image_sizes,
    reading_task,
    vision_language_tasks,
    vision_language_tasks_apart,
    vision_language_tasks_by_ids,
    vision_task,
)


def tasks(model: Any, spec: Model, last_only: bool = False) -> list[Task]:
    """The graphs of a model: one for an encoder or a decoder, two for an encoder-decoder, three for a dual encoder.

    In an encoder-decoder, the encoder projects the keys and values that the decoder attends to.
    """
    return _without_cross_attention(model, spec, last_only) or [
        encode_task(model, spec),
        next_decoder_task(model, spec, "decoder_model", last_only),
    ]


def tasks_with_first_step(model: Any, spec: Model, last_only: bool) -> list[Task]:
    """:func:`tasks` in which the encoder returns only its output, and a decoder for the first step projects it."""
    return _without_cross_attention(model, spec, last_only) or [
        encode_alone_task(model, spec),
        first_decoder_task(model, spec, last_only),
        next_decoder_task(model, spec, "decoder_with_past_model", last_only),
    ]


def tasks_with_merged_decoder(
    model: Any, spec: Model, last_only: bool = False, *, images_by_row: bool = False
) -> list[Task]:
    """:func:`tasks` in which the encoder returns only its output, and the decoder projects the part not yet in its cache.

    Images (in order, or the same number per row) and tokens are embedded separately, and the client merges them.
    """
    if spec.architecture == "vision-language":
        return vision_language_tasks_apart(model, spec, last_only, images_by_row=images_by_row)
    return _without_cross_attention(model, spec, last_only) or [
        encode_alone_task(model, spec),
        merged_decoder_task(model, spec, last_only),
    ]


def tasks_with_own_cache(model: Any, spec: Model, last_only: bool) -> list[Task]:
    """:func:`tasks` in which the decoder of an encoder-decoder caches only its own keys and values."""
    return [encode_alone_task(model, spec), projecting_decoder_task(model, spec, last_only)]


def tasks_by_ids(model: Any, spec: Model, last_only: bool = False) -> list[Task]:
    """:func:`tasks` in which a vision-language model's decoder takes token ids instead of inputs derived from them."""
    if spec.architecture == "vision-language":
        return vision_language_tasks_by_ids(model, spec, last_only)
    return tasks(model, spec, last_only)


def tasks_with_static_cache(model: Any, spec: Model, cache_slots: int, last_only: bool = False) -> list[Task]:
    """:func:`tasks` in which the decoder writes its own keys and values into static caches of ``cache_slots`` slots."""
    return _without_cross_attention(model, spec, last_only, cache_slots) or [
        encode_task(model, spec),
        next_decoder_task(model, spec, "decoder_model", last_only, cache_slots),
    ]


def cost_tasks(model: Any, spec: Model, outputs: Outputs) -> list[Task]:
    """:func:`tasks` with embeddings as part of the decoder, and of a dual encoder the parts of the whole model."""
    if spec.architecture == "vision-language":
        return [vision_task(spec), decoder_task(model, spec, False, None)]
    return stored_tasks(model, spec, outputs)


def stored_tasks(model: Any, spec: Model, outputs: Outputs) -> list[Task]:
    """Graphs with the weights of :func:`tasks`: of a dual encoder's whole model the head alone, on the ``outputs`` of the encoders."""
    if spec.architecture == "dual-encoder":
        return dual_encoder_parts(model, spec, outputs)
    return tasks(model, spec)


def training_task(spec: Model) -> Task:
    """The forward pass of training: without a cache, up to the output of the head. It is never exported."""
    both = spec.architecture == "encoder-decoder"
    if spec.architecture == "dual-encoder":
        return whole_task(spec, "training")
    if both:
        inputs, derived = encoder_inputs(spec)
        inputs += (ids_input("decoder_input_ids", "decoder_sequence_length"),)
    else:
        inputs = stack_inputs(spec, spec.first_stack, "sequence_length")
        derived = derived_sizes(spec, spec.first_stack, "sequence_length")
    if spec.architecture == "vision-language":
        inputs += image_inputs(spec)
        derived |= image_sizes(spec)

    return Task("training", inputs, _call_by_name(inputs), derived=derived)


def _call_by_name(inputs: tuple[Placeholder, ...]) -> GraphCall:
    """A call of a model with the first of its inputs, and the others by their names."""
    first, *others = (placeholder.name for placeholder in inputs)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return dict(model(values[first], **{name: values[name] for name in others}))

    return call


def training_tasks(model: Any, spec: Model, outputs: Outputs) -> list[Task]:
    """:func:`training_task` in parts, of which each reads ``outputs`` of those before it."""
    if spec.architecture == "dual-encoder":
        return dual_encoder_parts(model, spec, outputs)
    if spec.architecture == "vision-language":
        images = vision_task(spec)
        return [images, reading_task(spec, *outputs(images))]
    if spec.architecture == "encoder-decoder":
        encoder = encoder_part(spec)
        return [encoder, training_decoder_part(spec, *outputs(encoder))]
    return [training_task(spec)]


def _without_cross_attention(
    model: Any, spec: Model, last_only: bool, cache_slots: int | None = None
) -> list[Task]:
    """The graphs of a model; an empty list for an encoder-decoder, whose graphs depend on the client."""
    match spec.architecture:
        case "encoder":
            return [_encoder_task(model, spec)]
        case "decoder":
            return [decoder_task(model, spec, last_only, cache_slots)]
        case "dual-encoder":
            return dual_encoder_tasks(spec)
        case "vision-language":
            return vision_language_tasks(model, spec, last_only, cache_slots)
        case _:
            return []


def _encoder_task(model: Any, spec: Model) -> Task:
    length = "sequence_length"
    inputs = stack_inputs(spec, spec.stack("encoder"), length)
    if words := word_inputs(
        spec, length
    ):  # GLiNER's client passes neither token types nor boxes, which are zeros
        inputs = *inputs[:2], *words
    derived = derived_sizes(spec, spec.stack("encoder"), length)
    by_value = {}
    if (width := spec.head.span_width) is not None:
        derived |= {SPANS: DerivedSize(WORDS, lambda words: words * width)}
        by_value = {LABELS: DerivedSize(length, lambda tokens: tokens // TOKENS_PER_LABEL)}

    return Task("model", inputs, _call_by_name(inputs), derived=derived, by_value=by_value)
