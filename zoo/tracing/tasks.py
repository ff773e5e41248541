"""The graphs that a model is deployed as: their files, inputs, and what they compute.

Names and dims of inputs and outputs are those that ONNX clients expect.  Each task is a plain call of the model, so
that tracing it and running it in PyTorch are the same thing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from specs.embedding import Tokens
from specs.model import Model
from specs.stack import Stack as StackSpec
from zoo import functional
from zoo.components.attention import KeyValue, Projections
from zoo.components.latent import Latent
from zoo.models.stack import Stack, past_length
from zoo.tracing.symbols import Placeholder
from zoo.tracing.tracer import Call

BATCH = "batch_size"
ENCODER = "encoder_model"
"""The name of the encoder's graph where a decoder has one of its own."""
HIDDEN, ENCODER_HIDDEN = "last_hidden_state", "encoder_hidden_states"
"""The encoder's output, and what it is called where the decoder takes it."""


@dataclass(frozen=True)
class Task:
    """One graph: the name of its file (without .onnx), its inputs, and what it computes from them.

    ``sums`` are the sizes of outputs that no input has.  With ``last_only`` a decoder gives the scores of the last real
    token of each row alone, B 1 vocabulary.  ``places`` is the length of the caches of a decoder's own tokens, where they
    do not grow.
    """

    name: str
    inputs: tuple[Placeholder, ...]
    call: Call
    sums: tuple[str, ...] = ()
    last_only: bool = False
    places: int | None = None


def tasks(model: Any, spec: Model, last_only: bool = False) -> list[Task]:
    """The graphs of a model: one for an encoder or a decoder, two for an encoder-decoder.

    The encoder of the two projects the keys and values that the decoder attends to.
    """
    return _of_one_stack(model, spec, last_only) or [
        _encode_task(model, spec),
        _next_decoder_task(model, spec, "decoder_model", last_only),
    ]


def tasks_with_first_step(model: Any, spec: Model, last_only: bool = False) -> list[Task]:
    """As ``tasks``, but that the encoder gives its output alone, and a decoder for the first step projects it."""
    return _of_one_stack(model, spec, last_only) or [
        _encode_alone_task(model, spec),
        _first_decoder_task(model, spec, last_only),
        _next_decoder_task(model, spec, "decoder_with_past_model", last_only),
    ]


def tasks_with_merged_decoder(model: Any, spec: Model, last_only: bool = False) -> list[Task]:
    """As ``tasks``, but that the encoder gives its output alone, and the decoder projects what it has not projected yet."""
    return _of_one_stack(model, spec, last_only) or [
        _encode_alone_task(model, spec),
        _merged_decoder_task(model, spec, last_only),
    ]


def tasks_with_static_cache(model: Any, spec: Model, places: int, last_only: bool = False) -> list[Task]:
    """As ``tasks``, but that the keys and values of a decoder's own tokens get places in caches that do not grow."""
    return _of_one_stack(model, spec, last_only, places) or [
        _encode_task(model, spec),
        _next_decoder_task(model, spec, "decoder_model", last_only, places),
    ]


def training_task(spec: Model) -> Task:
    """The whole forward pass as it is trained, which no file has: without a cache, up to what the head gives."""
    both = spec.architecture == "encoder-decoder"
    stack = spec.encoder or spec.last_stack
    inputs = _inputs(spec, stack, "encoder_sequence_length" if both else "sequence_length")
    if both:
        inputs += (_ids("decoder_input_ids", "decoder_sequence_length"),)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        named = {given.name: values[given.name] for given in inputs[1:]}
        return dict(model(values[inputs[0].name], **named))

    return Task("training", inputs, call)


def _of_one_stack(model: Any, spec: Model, last_only: bool, places: int | None = None) -> list[Task]:
    """The one graph of an encoder or a decoder; none where a model is both."""
    match spec.architecture:
        case "encoder":
            return [_encoder_task(model, spec)]
        case "decoder":
            return [_decoder_task(model, spec, last_only, places)]
        case _:
            return []


def _ids(name: str, *dims: str) -> Placeholder:
    return Placeholder(name, torch.int64, (BATCH, *dims))


def _inputs(spec: Model, stack: StackSpec, length: str) -> tuple[Placeholder, ...]:
    """What goes into a stack: tokens of any length with their mask, or one input of fixed sizes."""
    embedding = spec.embedding_of(stack)
    if not embedding.takes_tokens:
        shape = embedding.input_shape(spec.context_length_of(stack))
        return (Placeholder(embedding.input_name, torch.float32, (BATCH, *shape)),)
    typed = isinstance(embedding, Tokens) and embedding.token_types > 1
    names = [embedding.input_name, "attention_mask", *(["token_type_ids"] if typed else [])]
    return tuple(_ids(name, length) for name in names)


def _encoder_task(model: Any, spec: Model) -> Task:
    assert spec.encoder is not None
    inputs = _inputs(spec, spec.encoder, "sequence_length")

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return model(values[inputs[0].name], values.get("attention_mask"), values.get("token_type_ids"))

    return Task("model", inputs, call)


def _cache_names(prefix: str, layers: int, part: str = "") -> list[tuple[str, str]]:
    infix = f"{part}." if part else ""
    return [(f"{prefix}.{i}.{infix}key", f"{prefix}.{i}.{infix}value") for i in range(layers)]


def _caches(
    names: Sequence[tuple[str, str]], stack: Stack, length: str | int, *, cross: bool = False
) -> Iterator[Placeholder]:
    for pair, block in zip(names, stack.blocks, strict=True):
        attention = block.cross_attention if cross else block.attention
        assert isinstance(attention, Projections | Latent)
        heads, *widths = attention.cached
        for name, width in zip(pair, widths, strict=True):
            yield Placeholder(name, attention.output.weight.dtype, (BATCH, heads, length, width))


def _gather(names: Sequence[tuple[str, str]], values: Mapping[str, Any]) -> list[KeyValue]:
    return [(values[key], values[value]) for key, value in names]


def _spread(names: Sequence[tuple[str, str]], cache: Sequence[KeyValue]) -> dict[str, Any]:
    return {name: tensor for pair, tensors in zip(names, cache, strict=True)
            for name, tensor in zip(pair, tensors, strict=True)}  # fmt: skip


def _decoder_task(model: Any, spec: Model, last_only: bool, places: int | None) -> Task:
    assert spec.decoder is not None
    layers = len(model.decoder.blocks)
    past, present = _cache_names("past_key_values", layers), _cache_names("present", layers)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        outputs = model(
            values["input_ids"],
            values.get("attention_mask"),
            _gather(past, values),
            values.get("token_type_ids"),
            values.get("position_ids"),
            last_only=last_only,
        )
        return {**outputs, **_spread(present, outputs.present_key_values)}

    seen = (
        _ids("attention_mask", "past_sequence_length + sequence_length")
        if places is None
        else _ids("position_ids", "sequence_length")
    )
    tokens = [
        seen if given.name == "attention_mask" else given
        for given in _inputs(spec, spec.decoder, "sequence_length")
    ]
    caches = _caches(past, model.decoder, places or "past_sequence_length")
    return Task("model", (*tokens, *caches), call, (), last_only, places)


def _encode_task(model: Any, spec: Model) -> Task:
    assert spec.encoder is not None
    inputs = _inputs(spec, spec.encoder, "encoder_sequence_length")
    present = _cache_names("present", len(model.decoder.blocks), "encoder")

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        outputs = model.encode(
            values[inputs[0].name], values.get("attention_mask"), values.get("token_type_ids")
        )
        return {**outputs, **_spread(present, outputs.present_key_values)}

    return Task(ENCODER, inputs, call)


def _encode_alone_task(model: Any, spec: Model) -> Task:
    """The encoder's output, and nothing of what the decoder makes of it."""
    task = _encode_task(model, spec)
    return replace(task, call=lambda model, values: {HIDDEN: task.call(model, values)[HIDDEN]})


def _next_decoder_task(
    model: Any, spec: Model, name: str, last_only: bool, places: int | None = None
) -> Task:
    """The decoder with the keys and values of the tokens so far, and of the encoder's."""
    past, encoded, present, _ = _decoder_names(model)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        outputs = model.decode(
            values["input_ids"],
            _gather(encoded, values),
            values.get("encoder_attention_mask"),
            _gather(past, values),
            position_ids=values.get("position_ids"),
            last_only=last_only,
        )
        return {**outputs, **_spread(present, outputs.present_key_values)}

    caches = _decoder_caches(model, "encoder_sequence_length", places)
    at = [] if places is None else [_ids("position_ids", "decoder_sequence_length")]
    inputs = (_NEW_TOKENS, *at, *_encoder_mask(spec), *caches)
    return Task(name, inputs, call, () if places else (_TOKENS_SO_FAR,), last_only, places)


def _first_decoder_task(model: Any, spec: Model, last_only: bool) -> Task:
    """The decoder's first step: from the encoder's output, of which it gives the keys and values, too."""
    _, _, present, encoded = _decoder_names(model)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        projected = model.keys_values(values[ENCODER_HIDDEN])
        mask = values.get("encoder_attention_mask")
        outputs = model.decode(values["input_ids"], projected, mask, last_only=last_only)
        return {**outputs, **_spread(present, outputs.present_key_values), **_spread(encoded, projected)}

    return Task(
        "decoder_model",
        (_NEW_TOKENS, _encoder_hidden(spec), *_encoder_mask(spec)),
        call,
        (),
        last_only,
    )


def _merged_decoder_task(model: Any, spec: Model, last_only: bool) -> Task:
    """The decoder for every step: what the cache has not of the encoder's output is projected, in the first step all."""
    past, encoded, present, encoded_present = _decoder_names(model)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        cached = _gather(encoded, values)
        projected = [
            (functional.append(key, new_key), functional.append(value, new_value))
            for (key, value), (new_key, new_value) in zip(
                cached, model.keys_values(values[ENCODER_HIDDEN][:, past_length(cached) :]), strict=True
            )
        ]
        outputs = model.decode(
            values["input_ids"],
            projected,
            values.get("encoder_attention_mask"),
            _gather(past, values),
            last_only=last_only,
        )
        return {
            **outputs,
            **_spread(present, outputs.present_key_values),
            **_spread(encoded_present, projected),
        }

    # Sizes are traced as numbers that grow in the order of the inputs: no more is cached than there is.
    caches = _decoder_caches(model, "past_encoder_sequence_length")
    inputs = (_NEW_TOKENS, *caches, _encoder_hidden(spec), *_encoder_mask(spec))
    return Task("decoder_model_merged", inputs, call, (_TOKENS_SO_FAR,), last_only)


_NEW_TOKENS = _ids("input_ids", "decoder_sequence_length")
_TOKENS_SO_FAR = "past_decoder_sequence_length + decoder_sequence_length"


def _decoder_names(model: Any) -> list[list[tuple[str, str]]]:
    """The names of the keys and values of a decoder's tokens and of its encoder's, as inputs and as outputs."""
    layers = len(model.decoder.blocks)
    return [
        _cache_names(prefix, layers, part)
        for prefix in ("past_key_values", "present")
        for part in ("decoder", "encoder")
    ]


def _decoder_caches(model: Any, encoder_length: str, places: int | None = None) -> Iterator[Placeholder]:
    """The caches of a decoder with an encoder, layer by layer."""
    past, encoded, _, _ = _decoder_names(model)
    own = _caches(past, model.decoder, places or "past_decoder_sequence_length")
    cross = _caches(encoded, model.decoder, encoder_length, cross=True)
    for key, value in zip(own, own, strict=True):
        yield from (key, value, next(cross), next(cross))


def _encoder_mask(spec: Model) -> list[Placeholder]:
    """The mask of the encoder's tokens; an image or a sound has no padding to mask."""
    assert spec.encoder is not None
    masked = spec.embedding_of(spec.encoder).takes_tokens
    return [_ids("encoder_attention_mask", "encoder_sequence_length")] if masked else []


def _encoder_hidden(spec: Model) -> Placeholder:
    """The encoder's output, which is float32 whatever the weights are, as all outputs are."""
    return Placeholder(ENCODER_HIDDEN, torch.float32, (BATCH, "encoder_sequence_length", spec.d_model))
