"""Run a model on one sequence, optionally generate, and record its attention weights.

A decoder reads generated tokens through its cache.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from specs.errors import UserError, option_name
from zoo.attention_maps.choice import AttentionChoice, StackName
from zoo.attention_maps.maps import LayerMap, grown
from zoo.attention_maps.reading import AttentionInput
from zoo.attention_maps.recording import AttentionCall, Recording
from zoo.builder import ZooModel
from zoo.models.decoder import Decoder
from zoo.models.dual_encoder import DualEncoder
from zoo.models.encoder import Encoder
from zoo.models.outputs import Outputs

Reader = Literal["encoder", "decoder"]
"""The stack whose tokens are the queries."""


@dataclass(frozen=True)
class AttentionStep:
    """The tokens of one pass through a stack, and the attention maps of their queries over all tokens so far.

    ``written``: the token that the model generates after them, if any.
    """

    reader: Reader
    ids: Sequence[int]
    maps: Sequence[LayerMap]
    written: int | None = None


@dataclass(frozen=True)
class Attended:
    """The ids that each stack read, the generated tokens, and the attention maps of each stack by layer."""

    ids: dict[Reader, list[int]] = field(default_factory=dict)
    written: list[int] = field(default_factory=list)
    maps: dict[StackName, list[LayerMap]] = field(default_factory=dict)

    @classmethod
    def of(cls, steps: Sequence[AttentionStep]) -> Attended:
        """Combine steps."""
        whole, pieces = cls(), dict[tuple[StackName, int], list[LayerMap]]()
        for step in steps:
            whole.ids.setdefault(step.reader, []).extend(step.ids)
            whole.written.extend([] if step.written is None else [step.written])
            for piece in step.maps:
                pieces.setdefault((piece.stack, piece.layer), []).append(piece)
        for (stack, _), parts in pieces.items():
            whole.maps.setdefault(stack, []).append(grown(parts))
        return whole


def looks(stack: StackName) -> Reader:
    """The stack whose tokens are the queries."""
    return "encoder" if stack == "encoder" else "decoder"


def looked_at(stack: StackName) -> Reader:
    """The stack whose tokens are the keys."""
    return "decoder" if stack == "decoder" else "encoder"


def attend(
    model: ZooModel,
    reading: AttentionInput,
    choice: AttentionChoice,
    new_tokens: int = 0,
    stop: Collection[int] = (),
) -> Iterator[AttentionStep]:
    """Run the model, then decode greedily up to ``new_tokens`` tokens or a token of ``stop``; the last one is not read.

    In an encoder-decoder, the encoder reads the ids, and the decoder, if chosen, the target.
    Raises :class:`specs.errors.UserError` for an attention without recorded weights.
    """
    if isinstance(model, Encoder):
        yield _step(model, choice, "encoder", reading.ids, lambda ids: model(ids, None, _types(reading)))[1]
    elif isinstance(model, Decoder):

        def read(past: Any, ids: Tensor) -> Outputs:
            return model(ids, past_key_values=past)

        yield from _decoded(model, choice, reading.ids, read, new_tokens, stop)
    elif isinstance(model, DualEncoder):
        raise UserError(
            f"{model.spec.name} is a dual encoder, whose attention cannot be shown\n  Choose a model with one encoder."
        )
    else:
        outputs, step = _step(
            model, choice, "encoder", reading.ids, lambda ids: model.encode(ids, None, _types(reading))
        )
        yield step
        if all(looks(stack) == "encoder" for stack in choice.layers):
            return
        encoded = outputs.present_key_values

        def read_target(past: Any, ids: Tensor) -> Outputs:
            return model.decode(ids, encoded, past_key_values=past)

        yield from _decoded(model, choice, reading.target, read_target, new_tokens, stop)


def _decoded(
    model: ZooModel,
    choice: AttentionChoice,
    ids: Sequence[int],
    read: Callable[[Any, Tensor], Outputs],
    new_tokens: int,
    stop: Collection[int],
) -> Iterator[AttentionStep]:
    """The steps of a decoder: the prompt, then generated tokens one by one."""
    past = None
    for _ in range(max(1, new_tokens)):
        outputs, step = _step(model, choice, "decoder", ids, partial(read, past))
        if not new_tokens:
            yield step
            return
        written = int(outputs.logits[0, -1].argmax())
        yield replace(step, written=written)
        if written in stop:
            return
        past, ids = outputs.present_key_values, [written]


def _step(
    model: ZooModel,
    choice: AttentionChoice,
    reader: Reader,
    ids: Sequence[int],
    read: Callable[[Tensor], Outputs],
) -> tuple[Outputs, AttentionStep]:
    maps: list[LayerMap] = []

    def keep(call: AttentionCall) -> None:
        if choice.wants(call.stack, call.layer):
            heads = range(call.weights.shape[1]) if choice.heads is None else choice.heads
            weights = call.weights[0, list(heads)]
            maps.append(LayerMap(call.stack, call.layer, heads, weights, call.seen[0], call.sink))

    with torch.inference_mode(), Recording(model, keep):
        outputs = read(torch.tensor([list(ids)]))
    _check(choice, reader, maps)
    return outputs, AttentionStep(reader, ids, maps)


def _check(choice: AttentionChoice, reader: Reader, maps: Sequence[LayerMap]) -> None:
    """Raise :class:`specs.errors.UserError` for a chosen layer without recorded weights."""
    found = {(each.stack, each.layer) for each in maps}
    for stack, layers in choice.layers.items():
        for layer in layers if looks(stack) == reader else ():
            if (stack, layer) not in found:
                raise UserError(
                    f"Layer {layer} of {stack} has no attention weights: its attention does not call "
                    f"zoo.functional.attention\n  Choose other layers with {option_name('layer')}, or call that function in the component."
                )


def _types(reading: AttentionInput) -> Tensor | None:
    return None if reading.types is None else torch.tensor([list(reading.types)])
