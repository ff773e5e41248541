"""The tasks of a model with an encoder and a decoder.

Clients differ in the graph that projects the cross-attention keys and values: the encoder, a decoder for the first step, or one
decoder for every step.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from specs.model.model import Model
from zoo import functional
from zoo.components.mixer import State
from zoo.context import StackContext
from zoo.core.graph_names import HIDDEN
from zoo.core.remembering import parts_key, reading_key
from zoo.core.state_names import MOMENTS
from zoo.tracing.symbols import Placeholder
from zoo.tracing.task import (
    BATCH,
    ENCODER,
    ENCODER_HIDDEN,
    ENCODER_LENGTH,
    StateNames,
    Task,
    constant_names,
    encoder_inputs,
    encoder_state,
    gather_state,
    ids_input,
    spread_state,
    state_inputs,
    state_names,
)


def encode_task(model: Any, spec: Model) -> Task:
    inputs, derived = encoder_inputs(spec)
    present = state_names("present", encoder_state(model.decoder), "encoder")

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        outputs = model.encode(
            values[inputs[0].name], values.get("attention_mask"), values.get("token_type_ids")
        )
        return {**outputs, **spread_state(present, outputs.present_key_values)}

    return Task(ENCODER, inputs, call, derived=derived, about=_encode_key(spec))


def _encode_key(spec: Model) -> Hashable | None:
    """All that :func:`encode_task` depends on: of the decoder, the attention to the encoder in each layer."""
    assert spec.encoder is not None
    assert spec.decoder is not None
    contexts = (StackContext.of(spec, name) for name in ("encoder", "decoder"))
    layers = spec.decoder.layer_blocks()
    crossing = (
        part for block in layers for part in (block.cross_attention or block.attention, block.sharing)
    )
    return parts_key(
        spec.encoder, spec.embedding_of(spec.encoder), *contexts, tuple(spec.decoder.owners()), *crossing
    )


def encode_alone_task(model: Any, spec: Model) -> Task:
    """The encoder without the cross-attention keys and values."""
    task = encode_task(model, spec)
    return replace(task, about=None, call=lambda model, values: {HIDDEN: task.call(model, values)[HIDDEN]})


def encoder_part(spec: Model) -> Task:
    """The encoder alone, with its output in the dtype in which the decoder reads it."""
    assert spec.encoder is not None
    inputs, derived = encoder_inputs(spec)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return {
            HIDDEN: model.encoder_output(
                values[inputs[0].name], values.get("attention_mask"), values.get("token_type_ids")
            )
        }

    about = parts_key(spec.encoder, spec.embedding_of(spec.encoder), StackContext.of(spec, "encoder"))
    return Task(ENCODER, inputs, call, derived=derived, about=about)


def training_decoder_part(spec: Model, hidden: Placeholder) -> Task:
    """The rest of a training step after the encoder's output: the decoder without a cache, and the head."""
    mask = [replace(placeholder, name="attention_mask") for placeholder in _encoder_mask(spec)]
    ids = ids_input("decoder_input_ids", "decoder_sequence_length")

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        keys_values = model.keys_values(values[hidden.name])
        return dict(model.decode(values[ids.name], keys_values, values.get("attention_mask")))

    return Task("decoder", (ids, hidden, *mask), call, about=_without_encoder(spec))


def _without_encoder(spec: Model) -> str | None:
    """All that the decoder depends on: of the encoder the width alone."""
    return reading_key(spec, without_layers_of=("encoder",))


def next_decoder_task(
    model: Any, spec: Model, name: str, last_only: bool, cache_slots: int | None = None
) -> Task:
    """The decoder for later steps: it takes the keys and values of earlier tokens and of the encoder's output."""
    past, encoded, present, _ = _decoder_names(model)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        outputs = model.decode(
            values["input_ids"],
            gather_state(encoded, values),
            values.get("encoder_attention_mask"),
            gather_state(past, values),
            position_ids=values.get("position_ids"),
            last_only=last_only,
        )
        return {**outputs, **spread_state(present, outputs.present_key_values)}

    caches = _decoder_caches(model, ENCODER_LENGTH, cache_slots)
    slots = [] if cache_slots is None else [ids_input("position_ids", "decoder_sequence_length")]
    inputs = (_NEW_TOKENS, *slots, *_encoder_mask(spec), *caches)
    constant = constant_names(past, model.decoder.states)
    return Task(
        name,
        inputs,
        call,
        () if cache_slots else (_TOKENS_SO_FAR,),
        last_only,
        cache_slots,
        constant,
        about=_without_encoder(spec),
    )


def first_decoder_task(model: Any, spec: Model, last_only: bool) -> Task:
    """The decoder's first step: it projects the encoder's output, and also returns these keys and values."""
    _, _, present, encoded = _decoder_names(model)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        projected = model.keys_values(values[ENCODER_HIDDEN])
        mask = values.get("encoder_attention_mask")
        outputs = model.decode(values["input_ids"], projected, mask, last_only=last_only)
        return {
            **outputs,
            **spread_state(present, outputs.present_key_values),
            **spread_state(encoded, projected),
        }

    return Task(
        "decoder_model",
        (_NEW_TOKENS, _encoder_hidden(spec), *_encoder_mask(spec)),
        call,
        (),
        last_only,
    )


def merged_decoder_task(model: Any, spec: Model, last_only: bool) -> Task:
    """The decoder for every step: it projects the encoder's output on the first step and reuses the cache afterwards."""
    past, encoded, present, encoded_present = _decoder_names(model)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        cached = gather_state(encoded, values)
        projected = [
            (functional.append(key, new_key), functional.append(value, new_value))
            for (key, value), (new_key, new_value) in zip(
                cached, model.keys_values(values[ENCODER_HIDDEN][:, projected_length(cached) :]), strict=True
            )
        ]
        outputs = model.decode(
            values["input_ids"],
            projected,
            values.get("encoder_attention_mask"),
            gather_state(past, values),
            last_only=last_only,
        )
        return {
            **outputs,
            **spread_state(present, outputs.present_key_values),
            **spread_state(encoded_present, projected),
        }

    # Symbols are traced as numbers that grow in the order of the inputs: the cache is never longer than the encoder output.
    caches = _decoder_caches(model, "past_encoder_sequence_length")
    inputs = (_NEW_TOKENS, *caches, _encoder_hidden(spec), *_encoder_mask(spec))
    constant = constant_names(past, model.decoder.states)
    return Task(MERGED, inputs, call, (_TOKENS_SO_FAR,), last_only, constant=constant)


def projecting_decoder_task(model: Any, spec: Model, last_only: bool) -> Task:
    """The decoder for clients that cache only its own keys and values: it projects the encoder's output on every step.

    Its state has the names of a decoder without an encoder.
    """
    states = model.decoder.states
    past, present = (state_names(moment, states) for moment in MOMENTS)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        outputs = model.decode(
            values["input_ids"],
            model.keys_values(values[ENCODER_HIDDEN]),
            values.get("encoder_attention_mask"),
            gather_state(past, values),
            last_only=last_only,
        )
        return {**outputs, **spread_state(present, outputs.present_key_values)}

    caches = [
        placeholder
        for layer in state_inputs(past, states, model.decoder, "past_decoder_sequence_length")
        for placeholder in layer
    ]
    inputs = (_NEW_TOKENS, *caches, _encoder_hidden(spec), *_encoder_mask(spec))
    return Task(MERGED, inputs, call, (_TOKENS_SO_FAR,), last_only, constant=constant_names(past, states))


def projected_length(cached: Sequence[State]) -> int:
    """The number of encoder tokens whose keys and values are in a cache."""
    return cached[0][0].shape[2]


MERGED = "decoder_model_merged"
"""The name of a decoder's graph for every step."""

_NEW_TOKENS = ids_input("input_ids", "decoder_sequence_length")
_TOKENS_SO_FAR = "past_decoder_sequence_length + decoder_sequence_length"


def _decoder_names(model: Any) -> list[StateNames]:
    """The names of the decoder's own state and of the encoder's keys and values, as inputs and then as outputs."""
    states = {"decoder": model.decoder.states, "encoder": encoder_state(model.decoder)}
    return [state_names(moment, state, part) for moment in MOMENTS for part, state in states.items()]


def _decoder_caches(model: Any, encoder_length: str, cache_slots: int | None = None) -> Iterator[Placeholder]:
    """The state of a decoder that attends to an encoder, layer by layer."""
    past, encoded, _, _ = _decoder_names(model)
    decoder = model.decoder
    own = state_inputs(past, decoder.states, decoder, cache_slots or "past_decoder_sequence_length")
    cross = state_inputs(encoded, encoder_state(decoder), decoder, encoder_length)
    for layer, crossed in zip(own, cross, strict=True):
        yield from (*layer, *crossed)


def _encoder_mask(spec: Model) -> list[Placeholder]:
    """The mask of the encoder's tokens; images and audio have no padding."""
    masked = spec.embedding_of(spec.stack("encoder")).takes_tokens
    return [ids_input("encoder_attention_mask", ENCODER_LENGTH)] if masked else []


def _encoder_hidden(spec: Model) -> Placeholder:
    """The encoder's output: float32 like all outputs, whatever the dtype of the weights."""
    sizes = (BATCH, ENCODER_LENGTH, spec.width_of(spec.stack("encoder")))
    return Placeholder(ENCODER_HIDDEN, torch.float32, sizes)
