"""The tasks of a model: the graphs that it is deployed as, and its training pass.

Each is a plain call of the model, so that tracing it and running it in PyTorch are the same thing.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from specs.model import Model
from zoo.tracing.dual_encoder_tasks import dual_encoder_tasks, whole_task
from zoo.tracing.encoder_decoder_tasks import (
    encode_alone_task,
    encode_task,
    first_decoder_task,
    merged_decoder_task,
    next_decoder_task,
)
from zoo.tracing.task import (
    Task,
    constant_names,
    derived_sizes,
    gather_state,
    ids_input,
    spread_state,
    stack_inputs,
    state_inputs,
    state_names,
)


def tasks(model: Any, spec: Model, last_only: bool = False) -> list[Task]:
    """The graphs of a model: one for an encoder or a decoder, two for an encoder-decoder, three for a dual encoder.

    In an encoder-decoder, the encoder projects the keys and values that the decoder attends to.
    """
    return _without_cross_attention(model, spec, last_only) or [
        encode_task(model, spec),
        next_decoder_task(model, spec, "decoder_model", last_only),
    ]


def tasks_with_first_step(model: Any, spec: Model, last_only: bool = False) -> list[Task]:
    """As ``tasks``, but the encoder returns only its output, and a decoder for the first step projects it."""
    return _without_cross_attention(model, spec, last_only) or [
        encode_alone_task(model, spec),
        first_decoder_task(model, spec, last_only),
        next_decoder_task(model, spec, "decoder_with_past_model", last_only),
    ]


def tasks_with_merged_decoder(model: Any, spec: Model, last_only: bool = False) -> list[Task]:
    """As ``tasks``, but the encoder returns only its output, and the decoder projects the part not yet in its cache."""
    return _without_cross_attention(model, spec, last_only) or [
        encode_alone_task(model, spec),
        merged_decoder_task(model, spec, last_only),
    ]


def tasks_with_static_cache(model: Any, spec: Model, cache_slots: int, last_only: bool = False) -> list[Task]:
    """As ``tasks``, but the decoder writes its own keys and values into static caches of ``cache_slots`` tokens."""
    return _without_cross_attention(model, spec, last_only, cache_slots) or [
        encode_task(model, spec),
        next_decoder_task(model, spec, "decoder_model", last_only, cache_slots),
    ]


def training_task(spec: Model) -> Task:
    """The forward pass of training: without a cache, up to the output of the head.  It is never exported."""
    both = spec.architecture == "encoder-decoder"
    if spec.architecture == "dual-encoder":
        return whole_task(spec, "training")
    stack, length = spec.first_stack, "encoder_sequence_length" if both else "sequence_length"
    inputs = stack_inputs(spec, stack, length)
    if both:
        inputs += (ids_input("decoder_input_ids", "decoder_sequence_length"),)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        named = {given.name: values[given.name] for given in inputs[1:]}
        return dict(model(values[inputs[0].name], **named))

    return Task("training", inputs, call, derived=derived_sizes(spec, stack, length))


def _without_cross_attention(
    model: Any, spec: Model, last_only: bool, cache_slots: int | None = None
) -> list[Task]:
    """The graphs of a model; an empty list for an encoder-decoder, whose graphs depend on the client."""
    match spec.architecture:
        case "encoder":
            return [_encoder_task(model, spec)]
        case "decoder":
            return [_decoder_task(model, spec, last_only, cache_slots)]
        case "dual-encoder":
            return dual_encoder_tasks(spec)
        case _:
            return []


def _encoder_task(model: Any, spec: Model) -> Task:
    assert spec.encoder is not None
    inputs = stack_inputs(spec, spec.encoder, "sequence_length")

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return model(values[inputs[0].name], values.get("attention_mask"), values.get("token_type_ids"))

    return Task("model", inputs, call, derived=derived_sizes(spec, spec.encoder, "sequence_length"))


def _decoder_task(model: Any, spec: Model, last_only: bool, cache_slots: int | None) -> Task:
    assert spec.decoder is not None
    state = model.decoder.states
    past, present = state_names("past", state), state_names("present", state)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        outputs = model(
            values["input_ids"],
            values.get("attention_mask"),
            gather_state(past, values),
            values.get("token_type_ids"),
            values.get("position_ids"),
            last_only=last_only,
        )
        return {**outputs, **spread_state(present, outputs.present_key_values)}

    seen = (
        ids_input("attention_mask", "past_sequence_length + sequence_length")
        if cache_slots is None
        else ids_input("position_ids", "sequence_length")
    )
    tokens = [
        seen if given.name == "attention_mask" else given
        for given in stack_inputs(spec, spec.decoder, "sequence_length")
    ]
    caches = state_inputs(past, state, model.decoder, cache_slots or "past_sequence_length")
    return Task(
        "model",
        (*tokens, *chain.from_iterable(caches)),
        call,
        (),
        last_only,
        cache_slots,
        constant_names(past, state),
    )
