"""The task of a decoder: tokens or embeddings, and its state."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import chain
from typing import Any

import torch

from specs.model.model import Model
from zoo.core.graph_names import (
    COORDINATES,
    COORDINATES_BESIDE_SLOTS,
    EMBEDDED,
    HIDDEN_STATES,
    TOKENS_AHEAD,
)
from zoo.core.remembering import reading_key
from zoo.models.outputs import Outputs
from zoo.tracing.symbols import Placeholder
from zoo.tracing.task import (
    BATCH,
    Task,
    constant_names,
    gather_state,
    ids_input,
    spread_state,
    stack_inputs,
    state_inputs,
    state_names,
)


def decoder_task(
    model: Any,
    spec: Model,
    last_only: bool,
    cache_slots: int | None,
    name: str = "model",
    *,
    embedded: bool = False,
    with_ids: bool = False,
) -> Task:
    """The decoder for every step.

    ``embedded``: it takes embeddings, batch x length x d_model, instead of tokens; ``with_ids``: it also takes the token ids, if
    it needs to tell image tokens from text.
    """
    assert spec.decoder is not None
    state = model.decoder.states
    past, present = state_names("past", state), state_names("present", state)

    def run(model: Any, values: Mapping[str, Any]) -> Outputs:
        mask, before = values.get("attention_mask"), gather_state(past, values)
        slots = None if cache_slots is None else values.get("position_ids")
        if embedded:
            x = values[EMBEDDED]
            ids = values.get("input_ids")
            ahead = values.get(TOKENS_AHEAD) if ids is None else model.ahead(ids)
            positions = model.positions(x, mask, before, slots).with_lookahead(ahead)
            positions = positions.along(
                values.get(_coordinates(cache_slots)) if spec.rotates_by_axis else None
            )
            return model.decode(x, positions, before, last_only=last_only)
        types = values.get("token_type_ids")
        more = {HIDDEN_STATES: values[HIDDEN_STATES]} if HIDDEN_STATES in values else {}
        return model(values["input_ids"], mask, before, types, slots, last_only=last_only, **more)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        outputs = run(model, values)
        return {**outputs, **spread_state(present, outputs.present_key_values)}

    caches = state_inputs(past, state, model.decoder, cache_slots or "past_sequence_length")
    inputs = (*_new(spec, cache_slots, embedded=embedded, with_ids=with_ids), *chain.from_iterable(caches))
    about = reader_key(spec) if spec.image is not None else None
    return Task(name, inputs, call, (), last_only, cache_slots, constant_names(past, state), about=about)


def reader_key(spec: Model, *, without_layers: bool = False) -> Hashable | None:
    """A key of all that a model with images depends on after its image graph."""
    idle = ("decoder",) if without_layers else ()
    key = reading_key(spec, without=("image",), without_layers_of=idle)
    return key and (key, spec.packs_images, spec.rotates_by_axis)


def _coordinates(cache_slots: int | None) -> str:
    """The name of the input of each token's frame, row and column."""
    return COORDINATES if cache_slots is None else COORDINATES_BESIDE_SLOTS


def _new(spec: Model, cache_slots: int | None, *, embedded: bool, with_ids: bool) -> Sequence[Placeholder]:
    """The inputs of the new tokens."""
    seen = (
        ids_input("attention_mask", "past_sequence_length + sequence_length")
        if cache_slots is None
        else ids_input("position_ids", "sequence_length")
    )
    if embedded:
        x = Placeholder(EMBEDDED, torch.float32, (BATCH, "sequence_length", spec.embedded_width))
        name = "input_ids" if with_ids else TOKENS_AHEAD
        more = [ids_input(name, "sequence_length")] if spec.stack("decoder").bidirectional == "image" else []
        if spec.rotates_by_axis:
            more.append(Placeholder(_coordinates(cache_slots), torch.int64, (3, BATCH, "sequence_length")))
        return [x, *more, seen]
    inputs = stack_inputs(spec, spec.stack("decoder"), "sequence_length")
    return [seen if placeholder.name == "attention_mask" else placeholder for placeholder in inputs]
