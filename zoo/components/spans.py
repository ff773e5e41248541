"""The head for spans of words.

Shapes: batch B, tokens T, words W, spans S = W x the largest width, labels C, width D.
"""

from __future__ import annotations

from typing import ClassVar, cast

import torch
from torch import Tensor, nn

import specs.kinds.spans as spec
from zoo.components.linear import Linear
from zoo.components.pooling import TokenSequence, Words
from zoo.context import BuildContext, StackContext
from zoo.core.precision import wide
from zoo.functional import constant, lstm, most_numbered, numbered, positions_from, taken
from zoo.registry import build_component, builds


class Gates(nn.Module):
    """The weights of one direction, gate by gate: of the input, H D, and of the hidden state, H H."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.read = nn.ModuleDict({gate: Linear(width, hidden) for gate in spec.GATES})
        self.kept = nn.ModuleDict({gate: Linear(hidden, hidden) for gate in spec.GATES})


class LstmLayer(nn.Module):
    """One layer, whose directions have half of the width each: B W D -> B W D."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.forward_gates, self.backward_gates = (Gates(width, width // 2) for _ in range(2))

    def forward(self, x: Tensor, counts: Tensor) -> Tensor:
        directions = (self.forward_gates, self.backward_gates)
        read, kept = (
            [_linears(gates.read) for gates in directions],
            [_linears(gates.kept) for gates in directions],
        )
        sides = [side for both in zip(read, kept, strict=True) for side in both]
        return lstm(
            x, counts, _weights(read), _weights(kept), tuple(gate.bias for side in sides for gate in side)
        )


def _linears(gates: nn.ModuleDict) -> list[Linear]:
    return [cast(Linear, gates[gate]) for gate in spec.GATES]


def _weights(directions: list[list[Linear]]) -> tuple[Tensor, ...]:
    return tuple(gate.weight for gates in directions for gate in gates)


@builds(spec.Lstm)
class Lstm(nn.Module):
    """B W D, and the number of words, B -> B W D, with zeros after the words."""

    def __init__(self, spec: spec.Lstm, context: BuildContext) -> None:
        super().__init__()
        self.layers = nn.ModuleList(LstmLayer(context.d_model) for _ in range(spec.layers))

    def forward(self, x: Tensor, counts: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x, counts)
        return x


class TwoLayers(nn.Module):
    """down(dropout(max(up(x), 0))), four times as wide inside as its output."""

    def __init__(self, width: int, out: int, dropout: float) -> None:
        super().__init__()
        self.up, self.dropout, self.down = Linear(width, 4 * out), nn.Dropout(dropout), Linear(4 * out, out)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.dropout(self.up(x).relu()))


class SpanVectors(nn.Module):
    """One vector per span, from its first and last word: B W D, B S 2 -> B S D."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.first, self.last = TwoLayers(width, width, dropout), TwoLayers(width, width, dropout)
        self.output = TwoLayers(2 * width, width, dropout)

    def forward(self, words: Tensor, spans: Tensor) -> Tensor:
        ends = (taken(self.first(words), spans[..., 0]), taken(self.last(words), spans[..., 1]))
        return self.output(torch.cat(ends, -1).relu())


def words_of(numbers: Tensor, count: int, width: int) -> Words:
    """The words that tokens stand for, B T, with the spans of up to ``width`` words from each of ``count`` words."""
    counts = numbers.amax(1, keepdim=True)
    first = positions_from(0, count, numbers)[:, None]  # W 1
    last = first + constant(tuple(range(width)), numbers)  # W widths
    spans = torch.stack((first.expand(last.shape), last), -1).flatten(0, 1)[None]  # 1 S 2
    return Words(numbers, counts, spans.expand(numbers.shape[0], -1, -1), spans[..., 1] < counts)


@builds(spec.Spans)
class Spans(nn.Module):
    """logits: B W widths C."""

    per_token: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, spec: spec.Spans, context: StackContext) -> None:
        super().__init__()
        width = spec.width(context.d_model)
        self.label_token, self.max_width = spec.label_token, spec.max_width
        self.projection = nn.Identity() if spec.projection is None else Linear(context.d_model, width)
        around = BuildContext.within(context, d_model=width)
        self.recurrent = None if spec.recurrent is None else build_component(spec.recurrent, around)
        self.spans = SpanVectors(width, spec.dropout)
        self.labels = TwoLayers(width, width, spec.dropout)

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        assert tokens.ids is not None
        x, words = self.projection(x), tokens.words or self.each_token(tokens.ids, tokens.mask)
        numbers = self.label_numbers(tokens.ids, tokens.mask)
        labels = self.labels(numbered(x, numbers, most_numbered(numbers)))  # B C D
        count = words.spans.shape[1] // self.max_width
        vectors = numbered(x, words.numbers, count)  # B W D
        if self.recurrent is not None:
            vectors = self.recurrent(vectors, words.counts[:, 0])
        spans = self.spans(vectors, words.spans * words.real.to(torch.int64)[..., None])  # B S D
        return {"logits": wide(spans @ labels.transpose(1, 2)).unflatten(1, (count, self.max_width))}

    def label_numbers(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """The number of the label that each token begins, from 1, or 0: B T."""
        begins = (ids == self.label_token).to(torch.int64)
        if mask is not None:
            begins = begins * mask
        return begins.cumsum(1) * begins

    def each_token(self, ids: Tensor, mask: Tensor | None) -> Words:
        """Every real token as a word."""
        count = ids.shape[1]
        numbers = (
            positions_from(1, count, ids)[None].expand(ids.shape) if mask is None else mask.cumsum(1) * mask
        )
        return words_of(numbers, count, self.max_width)

    def sums(self, outputs: dict[str, Tensor], ids: Tensor, mask: Tensor | None) -> dict[str, Tensor]:
        """The sum of the scores of the real spans of each row for its labels, B, where every token is a word."""
        words, numbers = self.each_token(ids, mask), self.label_numbers(ids, mask)
        scores = outputs["logits"].flatten(1, 2)  # B S C
        labelled = positions_from(1, scores.shape[2], ids) <= numbers.amax(1, keepdim=True)  # B C
        real = words.real[..., None] * labelled[:, None]
        return {"logits": (scores * real).sum((1, 2))}
