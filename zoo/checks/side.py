"""The two sides of a model, encoding and decoding, behind one way to read them.

Shapes: batch B, tokens T, past length P, width D.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from specs.embedding import EmbeddingKind
from specs.model import Model
from specs.position import PositionKind
from zoo.builder import ZooModel
from zoo.components.attention import KeyValue
from zoo.models.decoder import Decoder
from zoo.models.encoder import Encoder
from zoo.models.encoder_decoder import EncoderDecoder
from zoo.models.outputs import Outputs

LENGTH = 6
"""Tokens that a check reads, where the context allows."""


@dataclass(frozen=True)
class Reading:
    """What a side makes of some tokens.

    ``tokens`` has a vector per token, B T ..., among them the last hidden state; ``sequences`` one per sequence,
    B ...; ``cache`` the keys and values of each layer.
    """

    tokens: tuple[Tensor, ...]
    sequences: tuple[Tensor, ...] = ()
    cache: tuple[KeyValue, ...] = ()


Read = Callable[[Tensor, Tensor | None, Sequence[KeyValue] | None], Reading]
"""ids: B T (or what else goes in), mask: B (P + T) or None for all real, cache or None."""


@dataclass(frozen=True)
class Side:
    """A stack with its embedding, and its head where it is the last.

    ``length`` is how many tokens to read and ``vocabulary`` how many there are, none where something else goes in;
    ``draw`` gives so many rows of input for a seed; ``prefix`` tells the sides of an encoder-decoder apart in the
    names of checks.
    """

    prefix: str
    causal: bool
    embedding: EmbeddingKind
    position: PositionKind
    length: int
    vocabulary: int
    draw: Callable[[int, int], Tensor]
    read: Read


def sides(model: ZooModel, spec: Model) -> tuple[Side, ...]:
    """The sides of a model: one, or for an encoder-decoder two.

    The decoder of an encoder-decoder attends to the same encoder input in every row.
    """
    found = []
    for name, stack in spec.stacks():
        if isinstance(model, EncoderDecoder):
            prefix = f"{name}: "
            read = (
                reads_encoder(model)
                if name == "encoder"
                else reads_decoder(model, draw_inputs(spec, "encoder", 1, 1))
            )
        else:
            prefix, read = "", reads_model(model)
        embedding, context = spec.embedding_of(stack), spec.context_length_of(stack)
        length = min(LENGTH, context or LENGTH) if embedding.takes_tokens else context
        assert length is not None
        vocabulary = spec.vocab_size or 0
        draw = functools.partial(draw_inputs, spec, name)
        position = spec.position_of(stack)
        found.append(Side(prefix, name == "decoder", embedding, position, length, vocabulary, draw, read))
    return tuple(found)


def draw_inputs(spec: Model, name: Literal["encoder", "decoder"], rows: int, seed: int = 0) -> Tensor:
    """Random inputs for a stack: token ids, rows x length, or numbers in float64, rows x the sizes of an input."""
    stack = getattr(spec, name)
    embedding, context = spec.embedding_of(stack), spec.context_length_of(stack)
    if embedding.takes_tokens:
        assert spec.vocab_size is not None
        return draw_ids(rows, min(LENGTH, context or LENGTH), spec.vocab_size, seed)
    generator = torch.Generator().manual_seed(seed)
    shape = (rows, *embedding.input_shape(context))
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def reads_model(model: Encoder | Decoder) -> Read:
    """Reads with an encoder or a decoder."""

    def read(ids: Tensor, mask: Tensor | None = None, cache: Sequence[KeyValue] | None = None) -> Reading:
        with _head_inputs(model) as hidden:
            outputs = model(ids, mask) if isinstance(model, Encoder) else model(ids, mask, cache)
        return _reading(hidden[0], outputs)

    return read


def reads_encoder(model: EncoderDecoder) -> Read:
    """Reads with the encoder of an encoder-decoder."""

    def read(ids: Tensor, mask: Tensor | None = None, cache: Sequence[KeyValue] | None = None) -> Reading:
        return Reading((model.encode(ids, mask).last_hidden_state,))

    return read


def reads_decoder(model: EncoderDecoder, source: Tensor, source_mask: Tensor | None = None) -> Read:
    """Reads with the decoder of an encoder-decoder; source and source_mask: B S, or 1 S for all rows."""

    def read(ids: Tensor, mask: Tensor | None = None, cache: Sequence[KeyValue] | None = None) -> Reading:
        rows = ids.shape[0]
        encoded = [
            (key.expand(rows, -1, -1, -1), value.expand(rows, -1, -1, -1))
            for key, value in model.encode(source, source_mask).present_key_values
        ]
        seen = None if source_mask is None else source_mask.expand(rows, -1)
        with _head_inputs(model) as hidden:
            outputs = model.decode(ids, encoded, seen, cache, mask)
        return _reading(hidden[0], outputs)

    return read


@contextmanager
def _head_inputs(model: ZooModel) -> Iterator[list[Tensor]]:
    """What the head is given within the context: the last hidden state of each run."""
    seen: list[Tensor] = []

    def see(module: nn.Module, args: tuple[Tensor, ...]) -> None:
        seen.append(args[0])

    hook = model.head.register_forward_pre_hook(see)
    try:
        yield seen
    finally:
        hook.remove()


def _reading(hidden: Tensor, outputs: Outputs) -> Reading:
    per_token = tuple(
        output for output in outputs.values() if output.shape[:2] == hidden.shape[:2] and output.dim() > 2
    )
    per_sequence = tuple(
        output for output in outputs.values() if not any(output is each for each in per_token)
    )
    return Reading((hidden, *per_token), per_sequence, tuple(outputs.present_key_values))


def draw_ids(rows: int, length: int, vocabulary: int, seed: int = 0) -> Tensor:
    """Random token ids, rows x length; neighbours differ in the first two columns, where the vocabulary allows."""
    ids = torch.randint(vocabulary, (rows, length), generator=torch.Generator().manual_seed(seed))
    if length > 1:
        ids[:, 1] = another(ids[:, 0], vocabulary)
    return ids


def another(ids: Tensor, vocabulary: int) -> Tensor:
    """Each token replaced by a different one."""
    return (ids + 1) % vocabulary


def split(reading: Reading, parts: int) -> list[Reading]:
    """A reading of several batches of equal size that were read as one, batch by batch."""
    tokens = zip(*(x.chunk(parts) for x in reading.tokens), strict=True)
    sequences = (
        zip(*(x.chunk(parts) for x in reading.sequences), strict=True) if reading.sequences else [()] * parts
    )
    return [Reading(*each) for each in zip(tokens, sequences, strict=True)]


def apart(first: Sequence[Tensor], second: Sequence[Tensor]) -> float:
    """The largest difference between two lists of tensors, relative to the largest value of the same tensor."""
    differences = [_apart(a, b) for a, b in zip(first, second, strict=True) if a.numel()]
    return float(torch.stack(differences).max()) if differences else 0.0


def _apart(a: Tensor, b: Tensor) -> Tensor:
    largest = a.abs().max()
    return (a - b).abs().max() / torch.where(largest > 0, largest, 1.0)
