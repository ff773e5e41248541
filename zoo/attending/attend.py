"""A model reads one sequence, and may go on by itself, while the weights of its attentions are kept.

What a decoder reads after its first tokens goes through the cache: the keys of earlier tokens are those kept from then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from specs.errors import UserError, option_name
from zoo.attending.choice import Choice, StackName
from zoo.attending.maps import LayerMap, grown
from zoo.attending.reading import Reading
from zoo.attending.recording import Call, Recording
from zoo.builder import ZooModel
from zoo.models.decoder import Decoder
from zoo.models.encoder import Encoder
from zoo.models.outputs import Outputs

Reader = Literal["encoder", "decoder"]
"""Whose tokens the queries are."""


@dataclass(frozen=True)
class Step:
    """Tokens that went through a stack at once, and the maps of their queries: keys are all tokens so far.

    ``written`` is the token that the model puts after them, where it goes on by itself.
    """

    reader: Reader
    ids: Sequence[int]
    maps: Sequence[LayerMap]
    written: int | None = None


@dataclass(frozen=True)
class Attended:
    """All that was read, by who read it, what was written, and the maps of each stack in the order of its layers."""

    ids: dict[Reader, list[int]] = field(default_factory=dict)
    written: list[int] = field(default_factory=list)
    maps: dict[StackName, list[LayerMap]] = field(default_factory=dict)

    @classmethod
    def of(cls, steps: Sequence[Step]) -> Attended:
        """The steps put together."""
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
    """Whose tokens a stack's queries are."""
    return "encoder" if stack == "encoder" else "decoder"


def looked_at(stack: StackName) -> Reader:
    """Whose tokens a stack's keys are."""
    return "decoder" if stack == "decoder" else "encoder"


def attend(
    model: ZooModel, reading: Reading, choice: Choice, new_tokens: int = 0, stop: Collection[int] = ()
) -> Iterator[Step]:
    """Read, then write ``new_tokens`` or up to a token of ``stop``, each time the best; what is written is read, but the last.

    An encoder-decoder's encoder reads the ids, and its decoder, where it is looked at, the target.  Raises :class:`specs.errors.UserError` where
    an attention shows no weights.
    """
    if isinstance(model, Encoder):
        yield _step(model, choice, "encoder", reading.ids, lambda ids: model(ids, None, _types(reading)))[1]
    elif isinstance(model, Decoder):

        def read(past: Any, ids: Tensor) -> Outputs:
            return model(ids, past_key_values=past)

        yield from _decoded(model, choice, reading.ids, read, new_tokens, stop)
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
    choice: Choice,
    ids: Sequence[int],
    read: Callable[[Any, Tensor], Outputs],
    new_tokens: int,
    stop: Collection[int],
) -> Iterator[Step]:
    """The steps of a decoder: its first tokens at once, then those that it writes, one by one."""
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
    model: ZooModel, choice: Choice, reader: Reader, ids: Sequence[int], read: Callable[[Tensor], Outputs]
) -> tuple[Outputs, Step]:
    maps: list[LayerMap] = []

    def keep(call: Call) -> None:
        if choice.wants(call.stack, call.layer):
            heads = range(call.weights.shape[1]) if choice.heads is None else choice.heads
            weights = call.weights[0, list(heads)]
            maps.append(LayerMap(call.stack, call.layer, heads, weights, call.seen[0], call.sink))

    with torch.inference_mode(), Recording(model, keep):
        outputs = read(torch.tensor([list(ids)]))
    _check(choice, reader, maps)
    return outputs, Step(reader, ids, maps)


def _check(choice: Choice, reader: Reader, maps: Sequence[LayerMap]) -> None:
    """Raise :class:`specs.errors.UserError` where a layer that is wanted was not seen to attend."""
    found = {(each.stack, each.layer) for each in maps}
    for stack, layers in choice.layers.items():
        for layer in layers if looks(stack) == reader else ():
            if (stack, layer) not in found:
                raise UserError(
                    f"layer {layer} of {stack} shows no weights: its attention does not call "
                    f"zoo.functional.attention\n  choose others with {option_name('layer')}, or have its component call it"
                )


def _types(reading: Reading) -> Tensor | None:
    return None if reading.types is None else torch.tensor([list(reading.types)])
