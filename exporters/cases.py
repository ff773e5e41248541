"""The inputs on which an export is compared with its model.

Sizes differ from case to case and none is the one that the graph was traced with: batches of one and several, a
single token, lengths beyond the reach of whatever is local, ragged padding on either side.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from specs.head import sought_token
from specs.model import Model
from specs.position import RelativeBias

LONGEST = 300
"""Cases are not longer than this, whatever the model's reach: verification is to be quick."""

SOUGHT_SHARE = 0.2
"""How many of the tokens are the one that a head seeks: several in some rows, none in others."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Token ids, their mask (1 for real tokens) and their types, batch x length each."""

    ids: Tensor
    mask: Tensor
    types: Tensor

    @property
    def shape(self) -> str:
        """Batch x length."""
        return f"{self.ids.shape[0]} x {self.ids.shape[1]}"


@dataclass(frozen=True, eq=False)
class Case:
    """One comparison.  ``pieces`` are the lengths that are decoded one after another after all before them.

    ``encoder`` is the other input of an encoder-decoder.
    """

    name: str
    batch: Batch
    pieces: tuple[int, ...] = ()
    encoder: Batch | None = None

    @property
    def ends(self) -> list[int]:
        """Where each call ends: the first, then the pieces."""
        return list(itertools.accumulate(self.pieces, initial=self.batch.ids.shape[1] - sum(self.pieces)))

    @property
    def shape(self) -> str:
        """Batch x length, with its pieces, after that of the encoder."""
        rows, prompt = self.batch.ids.shape[0], self.ends[0]
        lengths = " + ".join(map(str, (prompt, *self.pieces)))
        own = f"{rows} x ({lengths})" if self.pieces else self.batch.shape
        return own if self.encoder is None else f"{self.encoder.shape} -> {own}"


def cases(spec: Model) -> Iterator[Case]:
    """The comparisons for a model."""
    generator = torch.Generator().manual_seed(20)
    room = min(spec.context_length or LONGEST, LONGEST)
    long = min(room, max(24, _reach(spec) + 8))
    sought = sought_token(spec.head)
    steps_room = _steps_room(spec, room)

    def batch(lengths: tuple[int, ...], side: str = "right", most: int = room) -> Batch:
        lengths = tuple(min(length, most) for length in lengths)
        width = max(lengths)
        ids = torch.randint(spec.vocab_size, (len(lengths), width), generator=generator)
        if sought is not None:
            places = torch.rand(ids.shape, generator=generator) < SOUGHT_SHARE
            ids = torch.where(places, sought, ids)
        types = torch.randint(max(1, spec.embedding.token_types), (len(lengths), width), generator=generator)
        at = torch.arange(width)
        rows = [at < length if side == "right" else at >= width - length for length in lengths]
        return Batch(ids, torch.stack(rows).to(torch.int64), types)

    def ones(most: int) -> tuple[int, ...]:
        return (1,) * min(most, steps_room - 1)

    if spec.architecture != "encoder-decoder":
        yield Case("one token", batch((1,)))
        yield Case("one sequence", batch((7,)))
        yield Case("a batch, long", batch((long, long)))
        yield Case("padding right", batch((11, 6, 1)))
        yield Case("padding left", batch((10, 5, 2), "left"))
        yield Case("nothing but padding", batch((4, 0)))
        steps = spec.architecture == "decoder" and spec.is_causal("decoder")
        if steps and steps_room > 4:
            yield Case("prompt, then steps", batch((9, 9), most=steps_room), pieces=ones(4))
            yield Case("padded prompt, then steps", batch((11, 6), "left", steps_room), pieces=ones(3))
        if steps and steps_room > 6:
            yield Case("prompt in pieces", batch((12, 5), "left", steps_room), pieces=(3, 1, 2))
        return
    yield Case("one token", batch((1,)), encoder=batch((1,)))
    yield Case("one sequence", batch((6,)), encoder=batch((11,)))
    yield Case("a batch, long", batch((long, long)), encoder=batch((long, long)))
    yield Case("padding right", batch((5, 5, 5)), encoder=batch((12, 7, 1)))
    yield Case("padding left", batch((4, 4)), encoder=batch((10, 3), "left"))
    yield Case("nothing but padding", batch((3, 3)), encoder=batch((6, 0)))
    steps = spec.is_causal("decoder")
    if steps and steps_room > 4:
        yield Case(
            "prompt, then steps", batch((8, 8), most=steps_room), pieces=ones(5), encoder=batch((9, 4))
        )
    if steps and steps_room > 6:
        yield Case(
            "prompt in pieces", batch((12, 12), most=steps_room), pieces=(3, 1, 2), encoder=batch((3, 10))
        )


def _reach(spec: Model) -> int:
    """The distance from which on all distances are treated alike, unseen or as one, or the length from which on all
    tokens are rotated alike."""
    positions: list[object] = [spec.position_of(stack) for _, stack in spec.stacks()]
    windows = []
    for _, stack in spec.stacks():
        attentions = [block.attention for block in stack.layer_blocks()]
        positions += [getattr(attention, "position", None) for attention in attentions]
        windows += [getattr(attention, "window", None) or 0 for attention in attentions]
    distances = [position.max_distance for position in positions if isinstance(position, RelativeBias)]
    return max([*distances, *windows, spec.border or 0])


def _steps_room(spec: Model, room: int) -> int:
    """How long a sequence may be that is decoded in pieces.

    Keys keep the angles that they got: a sequence that grows beyond a border is not what it is as a whole.
    """
    return room if spec.border is None else min(room, spec.border)
