"""Token ids, images or audio as inputs of a graph: batch B, tokens T."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exporters.runtime.graph import Floats, Ids, LoadedGraph
from exporters.runtime.tokens import padded, token_inputs, word_inputs
from specs.base.errors import UserError, option_name
from specs.model.model import Model
from specs.model.stack import Stack
from zoo.generation.prompts import check_prompts

InputBatch = Sequence[Sequence[int]] | Floats
"""Rows of token ids, or images or spectrograms, with the batch as the first axis."""


class Recordings(tuple[Floats, ...]):
    """Samples or frames of recordings of any length, 1 N or 1 N M each."""


ModelInputs = InputBatch | Recordings


def batches(inputs: ModelInputs) -> Sequence[InputBatch]:
    """Split inputs into batches: recordings run one by one, so that none is padded."""
    return inputs if isinstance(inputs, Recordings) else [inputs]


def model_inputs(
    graph: LoadedGraph, spec: Model, stack: Stack, batch: InputBatch
) -> tuple[dict[str, Ids | Floats], Ids | None]:
    """Return the inputs of a graph, padded on the right, and the mask of their tokens, B T (None for images and audio).

    Raises :class:`specs.base.errors.UserError` for inputs that the stack does not take.
    """
    embedding, tokens = spec.embedding_of(stack), not isinstance(batch, np.ndarray)
    if embedding.takes_tokens != tokens:
        audio = option_name("audio")
        option = {"pixel_values": option_name("image"), "input_features": audio, "input_values": audio}
        raise UserError(
            f"{spec.name} takes {embedding.input_name}\n"
            f"  value: {'token ids' if tokens else 'an image or a sound'}\n"
            f"  Pass {option.get(embedding.input_name, option_name('text'))}."
        )
    if isinstance(batch, np.ndarray):
        real = {"attention_mask": np.ones(batch.shape[:2], np.int64)} if embedding.takes_mask else {}
        return {embedding.input_name: batch, **real}, None
    check_prompts(spec, stack, batch)
    ids, mask = padded(batch, right=True)
    beside = {
        value.name: np.zeros((*ids.shape, *value.sizes), np.float32 if value.is_real else np.int64)
        for value in embedding.token_inputs
    }
    width = spec.head.span_width  # without a tokenizer, every token is a word
    words = {} if width is None else word_inputs(mask.cumsum(1) * mask, width)
    return {**token_inputs(graph, ids, mask), **beside, **words}, mask
