"""The graphs that a model is deployed as: their files, inputs, and what they compute.

Names and dims of inputs and outputs are those that ONNX clients expect.  Each task is a plain call of the model, so
that tracing it and running it in PyTorch are the same thing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from specs.embedding import Tokens
from specs.model import Model
from specs.stack import Stack as StackSpec
from zoo.components.attention import KeyValue, Projections
from zoo.components.latent import Latent
from zoo.models.stack import Stack
from zoo.tracing.symbols import Placeholder
from zoo.tracing.tracer import Call

BATCH = "batch_size"


@dataclass(frozen=True)
class Task:
    """One graph: the name of its file (without .onnx), its inputs, and what it computes from them.

    ``sums`` are the sizes of outputs that no input has.  With ``last_only`` a decoder gives the scores of the last real
    token of each row alone, B 1 vocabulary.
    """

    name: str
    inputs: tuple[Placeholder, ...]
    call: Call
    sums: tuple[str, ...] = ()
    last_only: bool = False


def tasks(model: Any, spec: Model, *, last_only: bool = False) -> list[Task]:
    """The graphs of a model: one for an encoder or a decoder, two for an encoder-decoder."""
    match spec.architecture:
        case "encoder":
            return [_encoder_task(model, spec)]
        case "decoder":
            return [_decoder_task(model, spec, last_only)]
        case _:
            return [_encode_task(model, spec), _cross_decoder_task(model, spec, last_only)]


def _ids(name: str, *dims: str) -> Placeholder:
    return Placeholder(name, torch.int64, (BATCH, *dims))


def _inputs(model: Any, spec: Model, stack: StackSpec, length: str) -> tuple[Placeholder, ...]:
    """What goes into a stack: tokens of any length with their mask, or one input of fixed sizes."""
    embedding = spec.embedding_of(stack)
    if not embedding.takes_tokens:
        shape = embedding.input_shape(spec.context_length_of(stack))
        dtype = next(model.parameters()).dtype
        return (Placeholder(embedding.input_name, dtype, (BATCH, *shape)),)
    typed = isinstance(embedding, Tokens) and embedding.token_types > 1
    names = [embedding.input_name, "attention_mask", *(["token_type_ids"] if typed else [])]
    return tuple(_ids(name, length) for name in names)


def _encoder_task(model: Any, spec: Model) -> Task:
    assert spec.encoder is not None
    inputs = _inputs(model, spec, spec.encoder, "sequence_length")

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return model(values[inputs[0].name], values.get("attention_mask"), values.get("token_type_ids"))

    return Task("model", inputs, call)


def _cache_names(prefix: str, layers: int, part: str = "") -> list[tuple[str, str]]:
    infix = f"{part}." if part else ""
    return [(f"{prefix}.{i}.{infix}key", f"{prefix}.{i}.{infix}value") for i in range(layers)]


def _caches(
    names: Sequence[tuple[str, str]], stack: Stack, length: str, *, cross: bool = False
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


def _decoder_task(model: Any, spec: Model, last_only: bool) -> Task:
    assert spec.decoder is not None
    layers = len(model.decoder.blocks)
    past, present = _cache_names("past_key_values", layers), _cache_names("present", layers)

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        outputs = model(
            values["input_ids"],
            values["attention_mask"],
            _gather(past, values),
            values.get("token_type_ids"),
            last_only=last_only,
        )
        return {**outputs, **_spread(present, outputs.present_key_values)}

    tokens = [
        _ids(given.name, "past_sequence_length + sequence_length")
        if given.name == "attention_mask"
        else given
        for given in _inputs(model, spec, spec.decoder, "sequence_length")
    ]
    return Task(
        "model", (*tokens, *_caches(past, model.decoder, "past_sequence_length")), call, (), last_only
    )


def _encode_task(model: Any, spec: Model) -> Task:
    assert spec.encoder is not None
    inputs = _inputs(model, spec, spec.encoder, "encoder_sequence_length")
    present = _cache_names("present", len(model.decoder.blocks), "encoder")

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        outputs = model.encode(
            values[inputs[0].name], values.get("attention_mask"), values.get("token_type_ids")
        )
        return {**outputs, **_spread(present, outputs.present_key_values)}

    return Task("encoder_model", inputs, call)


def _cross_decoder_task(model: Any, spec: Model, last_only: bool) -> Task:
    assert spec.encoder is not None
    layers = len(model.decoder.blocks)
    past = _cache_names("past_key_values", layers, "decoder")
    encoded = _cache_names("past_key_values", layers, "encoder")
    present = _cache_names("present", layers, "decoder")

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        outputs = model.decode(
            values["input_ids"],
            _gather(encoded, values),
            values.get("encoder_attention_mask"),
            _gather(past, values),
            last_only=last_only,
        )
        return {**outputs, **_spread(present, outputs.present_key_values)}

    masked = spec.embedding_of(spec.encoder).takes_tokens  # an image or a sound has no padding to mask
    inputs = (
        _ids("input_ids", "decoder_sequence_length"),
        *([_ids("encoder_attention_mask", "encoder_sequence_length")] if masked else []),
        *_caches(past, model.decoder, "past_decoder_sequence_length"),
        *_caches(encoded, model.decoder, "encoder_sequence_length", cross=True),
    )
    sums = ("past_decoder_sequence_length + decoder_sequence_length",)
    return Task("decoder_model", inputs, call, sums, last_only)
