"""Run a model on one input, optionally generate, and record its attention weights.

A decoder reads generated tokens through its cache.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from specs.base.errors import UserError, option_name
from zoo.attention_maps.choice import AttentionChoice, Reader, StackName, looks
from zoo.attention_maps.maps import LayerMap, grown
from zoo.attention_maps.reading import AttentionInput
from zoo.attention_maps.recording import AttentionCall, Recording
from zoo.builder import ZooModel
from zoo.models.decoder import Decoder
from zoo.models.dual_encoder import DualEncoder
from zoo.models.encoder import Encoder
from zoo.models.outputs import Outputs
from zoo.models.vision_language import VisionLanguage


@dataclass(frozen=True)
class AttentionStep:
    """The inputs of one pass through a stack, and the attention maps of its queries over everything read so far.

    ``ids``: tokens; ``names``: those of patches or frames instead; ``written``: the token that the model generates after
    them, if any.
    """

    reader: Reader
    ids: Sequence[int]
    maps: Sequence[LayerMap]
    names: Sequence[str] = ()
    written: int | None = None


@dataclass(frozen=True)
class Attended:
    """The ids, or the names of patches or frames, that each stack read, the generated tokens, and the attention maps of
    each stack by layer."""

    ids: dict[Reader, list[int]] = field(default_factory=dict)
    names: dict[Reader, list[str]] = field(default_factory=dict)
    written: list[int] = field(default_factory=list)
    maps: dict[StackName, list[LayerMap]] = field(default_factory=dict)

    @classmethod
    def of(cls, steps: Sequence[AttentionStep]) -> Attended:
        """Combine steps."""
        whole, pieces = cls(), dict[tuple[StackName, int], list[LayerMap]]()
        for step in steps:
            if step.names:
                whole.names[step.reader] = list(step.names)
            else:
                whole.ids.setdefault(step.reader, []).extend(step.ids)
            whole.written.extend([] if step.written is None else [step.written])
            for piece in step.maps:
                pieces.setdefault((piece.stack, piece.layer), []).append(piece)
        for (stack, _), parts in pieces.items():
            whole.maps.setdefault(stack, []).append(grown(parts))
        return whole


def attend(
    model: ZooModel,
    reading: AttentionInput,
    choice: AttentionChoice,
    new_tokens: int = 0,
    stop: Collection[int] = (),
) -> Iterator[AttentionStep]:
    """Run the model, then decode greedily up to ``new_tokens`` tokens or a token of ``stop``; the last one is not read.

    In an encoder-decoder, the encoder reads the ids or the values, and the decoder, if chosen, the target.  In a dual encoder or a
    vision-language model, only the chosen stacks are shown.
    Raises :class:`specs.base.errors.UserError` for an attention without recorded weights.
    """
    if isinstance(model, Encoder):
        yield _whole(model, reading, choice, "encoder", model)[1]
    elif isinstance(model, VisionLanguage) and reading.values is not None:
        yield from _seen(model, reading, choice, new_tokens, stop)
    elif isinstance(model, Decoder):

        def read(past: Any, ids: Tensor) -> Outputs:
            return model(ids, past_key_values=past)

        yield from _decoded(model, choice, reading.ids, read, new_tokens, stop)
    elif isinstance(model, DualEncoder):
        for stack in choice.layers:
            yield _whole(model, reading, choice, looks(stack), partial(model.encode, looks(stack)))[1]
    else:
        outputs, step = _whole(model, reading, choice, "encoder", model.encode)
        yield step
        if all(looks(stack) == "encoder" for stack in choice.layers):
            return
        encoded = outputs.present_key_values

        def read_target(past: Any, ids: Tensor) -> Outputs:
            return model.decode(ids, encoded, past_key_values=past)

        yield from _decoded(model, choice, reading.target, read_target, new_tokens, stop)


def _seen(
    model: VisionLanguage,
    reading: AttentionInput,
    choice: AttentionChoice,
    new_tokens: int,
    stop: Collection[int],
) -> Iterator[AttentionStep]:
    """The pass over an image, and the steps of the decoder that reads its vectors in the place of placeholders."""

    def encode_images(values: Tensor, *_: Any) -> Outputs:
        return Outputs({"vectors": model.encode_images(values)})

    outputs, step = _whole(model, reading, choice, "image", encode_images)
    if "image" in choice.layers:
        yield step
    if "decoder" not in choice.layers:
        return

    def read(past: Any, ids: Tensor) -> Outputs:
        x = model.embed(ids, outputs.vectors if past is None else None)
        return model.decode(
            x, model.positions(x, None, past, None).with_lookahead(model.ahead(ids)), past, ids
        )

    yield from _decoded(model, choice, reading.ids, read, new_tokens, stop)


def _whole(
    model: ZooModel,
    reading: AttentionInput,
    choice: AttentionChoice,
    reader: Reader,
    read: Callable[[Tensor, None, Tensor | None], Outputs],
) -> tuple[Outputs, AttentionStep]:
    """The pass of a stack that reads all of its input at once."""
    names = reading.names_of(model.spec, reader)
    if reading.values is not None and names:
        inputs = torch.from_numpy(reading.values).to(next(model.parameters()).dtype)
    else:
        inputs = torch.tensor([list(reading.ids)])
    types = None if reading.types is None else torch.tensor([list(reading.types)])
    outputs, maps = _recorded(model, choice, reader, lambda: read(inputs, None, types))
    return outputs, AttentionStep(reader, () if names else reading.ids, maps, names)


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
        outputs, maps = _recorded(model, choice, "decoder", partial(read, past, torch.tensor([list(ids)])))
        step = AttentionStep("decoder", ids, maps)
        if not new_tokens:
            yield step
            return
        written = int(outputs.logits[0, -1].argmax())
        yield replace(step, written=written)
        if written in stop:
            return
        past, ids = outputs.present_key_values, [written]


def _recorded(
    model: ZooModel, choice: AttentionChoice, reader: Reader, run: Callable[[], Outputs]
) -> tuple[Outputs, list[LayerMap]]:
    """The outputs of a pass, and the maps of the chosen attentions."""
    maps: list[LayerMap] = []

    def keep(call: AttentionCall) -> None:
        if choice.wants(call.stack, call.layer):
            heads = range(call.weights.shape[1]) if choice.heads is None else choice.heads
            weights = call.weights[0, list(heads)]
            maps.append(LayerMap(call.stack, call.layer, heads, weights, call.seen[0], call.sink))

    with torch.inference_mode(), Recording(model, keep):
        outputs = run()
    _check(choice, reader, maps)
    return outputs, maps


def _check(choice: AttentionChoice, reader: Reader, maps: Sequence[LayerMap]) -> None:
    """Raise :class:`specs.base.errors.UserError` for a chosen layer without recorded weights."""
    recorded = {(layer_map.stack, layer_map.layer) for layer_map in maps}
    for stack, layers in choice.layers.items():
        for layer in layers if looks(stack) == reader else ():
            if (stack, layer) not in recorded:
                raise UserError(
                    f"Layer {layer} of {stack} has no attention weights: its attention does not call "
                    f"zoo.functional.attention\n  Choose other layers with {option_name('layer')}, or call that function in the component."
                )
