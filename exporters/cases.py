"""The inputs on which an export is compared with its model.

Sizes differ from case to case and none is the one that the graph was traced with: batches of one and several, a
single token, lengths beyond the reach of whatever is local, ragged padding on either side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from specs.model import Model
from specs.position import RelativeBias

LONGEST = 300
"""Cases are not longer than this, whatever the model's reach: verification is to be quick."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Token ids and their mask (1 for real tokens), batch x length each."""

    ids: Tensor
    mask: Tensor

    @property
    def shape(self) -> str:
        """Batch x length."""
        return f"{self.ids.shape[0]} x {self.ids.shape[1]}"


@dataclass(frozen=True, eq=False)
class Case:
    """One comparison.  ``steps`` tokens at the end are decoded one by one after the rest; ``encoder`` is its other input."""

    name: str
    batch: Batch
    steps: int = 0
    encoder: Batch | None = None


def cases(spec: Model) -> Iterator[Case]:
    """The comparisons for a model."""
    generator = torch.Generator().manual_seed(20)
    room = min(spec.context_length or LONGEST, LONGEST)
    long = min(room, max(40, _reach(spec) + 8))

    def batch(lengths: tuple[int, ...], side: str = "right") -> Batch:
        lengths = tuple(min(length, room) for length in lengths)
        width = max(lengths)
        ids = torch.randint(spec.vocab_size, (len(lengths), width), generator=generator)
        at = torch.arange(width)
        rows = [at < length if side == "right" else at >= width - length for length in lengths]
        return Batch(ids, torch.stack(rows).to(torch.int64))

    if spec.architecture != "encoder-decoder":
        yield Case("one token", batch((1,)))
        yield Case("one sequence", batch((7,)))
        yield Case("a batch, long", batch((long, long)))
        yield Case("padding right", batch((16, 9, 1)))
        yield Case("padding left", batch((13, 5, 2), "left"))
        if spec.architecture == "decoder" and room > 4:
            yield Case("prompt, then steps", batch((9, 9)), steps=min(4, room - 1))
            yield Case("padded prompt, then steps", batch((11, 6), "left"), steps=min(3, room - 1))
        return
    yield Case("one token", batch((1,)), encoder=batch((1,)))
    yield Case("one sequence", batch((6,)), encoder=batch((11,)))
    yield Case("a batch, long", batch((long, long)), encoder=batch((long, long)))
    yield Case("padding right", batch((5, 5, 5)), encoder=batch((12, 7, 1)))
    yield Case("padding left", batch((4, 4)), encoder=batch((10, 3), "left"))
    if room > 4:
        yield Case("prompt, then steps", batch((8, 8)), steps=min(5, room - 1), encoder=batch((9, 4)))


def _reach(spec: Model) -> int:
    """The distance from which on all distances are treated alike."""
    positions = [spec.position_of(stack) for _, stack in spec.stacks()]
    return max((position.max_distance for position in positions if isinstance(position, RelativeBias)), default=0)
