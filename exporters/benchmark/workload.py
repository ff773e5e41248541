"""The workloads that are timed: calls of a model on inputs of some sizes."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from exporters.runtime.model_inputs import InputBatch
from specs.base.errors import UserError, option_name
from specs.model.model import Model

USUAL = 128
"""The default length of a sequence, in tokens."""

Kind = Literal["encode", "prompt", "step", "generate"]


@dataclass(frozen=True)
class Workload:
    """One call: an encoder's pass, a decoder's prompt, one step after ``past`` tokens, or generating ``new`` ones.

    ``lengths`` are the lengths of the input rows: the prompts, or the input of an encoder; those of images and recordings are
    their numbers of vectors. ``rows`` are the prompts, if not any tokens.
    """

    kind: Kind
    lengths: tuple[int, ...]
    past: int = 0
    new: int = 1
    rows: tuple[tuple[int, ...], ...] = ()

    def inputs(self, spec: Model) -> InputBatch:
        """The tokens of each input row of an encoder, or drawn images or recordings of the largest length, B and the sizes of one."""
        embedding = spec.embedding_of(spec.first_stack)
        if embedding.takes_tokens:
            return self.prompts(spec.vocab_size or 1)
        shape = self.batch, *embedding.input_shape(max(self.lengths))
        return np.random.default_rng(0).standard_normal(shape, np.float32)

    def prompts(self, vocabulary: int) -> list[list[int]]:
        """The tokens of each input row."""
        return [list(row) for row in self.rows] or token_rows(self.lengths, vocabulary)

    def beginning(self, text: Sequence[int]) -> Workload:
        """The workload with rows of a text one after another, which begins again at its end; the same without a text."""
        tokens = itertools.cycle(text)
        rows = tuple(tuple(itertools.islice(tokens, length)) for length in self.lengths)
        return replace(self, rows=rows) if text else self

    @property
    def batch(self) -> int:
        """The number of rows."""
        return len(self.lengths)

    @property
    def tokens(self) -> int:
        """The number of tokens that a call reads or generates."""
        return {"encode": sum(self.lengths), "prompt": sum(self.lengths)}.get(
            self.kind, self.batch * self.new
        )

    @property
    def label(self) -> str:
        """A label such as ``step 8 @ 1024``: batch and past."""
        low, high = min(self.lengths), max(self.lengths)
        size = f"{self.batch} x {high if low == high else f'{low}-{high}'}"
        match self.kind:
            case "step":
                return f"step {self.batch} @ {self.past}"
            case "generate":
                return f"generate {size} + {self.new}"
            case kind:
                return f"{kind} {size}"


@dataclass(frozen=True)
class WorkloadGrid:
    """The sizes to time: batches, lengths (``128``, or ``16-128`` for rows between), past lengths, new tokens.

    The default length and past are 128, or the largest that the model takes, with the new tokens.
    """

    batches: tuple[int, ...] = (1,)
    lengths: tuple[str, ...] = ()
    pasts: tuple[int, ...] = ()
    new: int | None = None

    def workloads(self, spec: Model) -> list[Workload]:
        """The workloads of a model. Raises :class:`specs.base.errors.UserError` for sizes that it does not take."""
        embeddings = [spec.embedding_of(stack) for _, stack in spec.stacks()]
        tokens = all(kind.takes_tokens and not kind.reads_hidden_states for kind in embeddings)
        if not tokens and (spec.architecture != "encoder" or embeddings[0].packed):
            raise UserError(
                f"{spec.name} cannot be timed: zoo bench draws the inputs of encoders and of decoders of tokens alone\n"
                f"  value: {spec.architecture}, inputs {', '.join(kind.input_name for kind in embeddings)}\n"
                "  Export it and time zoo run, which prints the time of each stage."
            )
        if spec.decodes and not spec.head.predicts_next:
            raise UserError(
                f"Timing {spec.name} needs a head of kind language_modeling\n"
                f"  value: {spec.architecture}, head {spec.head.kind}\n  Set head.kind=language_modeling."
            )
        reads = spec.encoder or spec.decoder
        assert reads is not None
        generates = spec.encoder is None  # the stack that reads also generates
        room = (spec.context_length_of(reads) or sys.maxsize) - generates
        fixed = embeddings[0].fixed_length
        if self.lengths and fixed is not None:
            raise UserError(
                f"{option_name('lengths')} does not apply to {spec.name}, whose inputs have one size\n"
                f"  value: {','.join(self.lengths)}\n  Remove the option."
            )
        if not tokens and any(len(set(_rows(2, length))) > 1 for length in self.lengths):
            raise UserError(
                f"{option_name('lengths')} must be single numbers for {spec.name}, whose recordings are timed without padding\n"
                f"  value: {','.join(self.lengths)}\n  Use 128."
            )
        fitting = fixed or max(1, min(USUAL, room - generates * ((self.new or 1) - 1)))
        lengths = self.lengths or [str(fitting)]
        rows = [_rows(batch, length) for batch in self.batches for length in lengths]
        longest = max(map(max, rows))
        _check_fits(spec, option_name("lengths"), longest, room)
        if spec.decoder is None:
            return [Workload("encode", row) for row in rows]
        room = (spec.context_length_of(spec.decoder) or sys.maxsize) - 1
        pasts = self.pasts or (min(USUAL, room),)
        _check_fits(spec, option_name("pasts"), max(pasts), room)
        _check_fits(spec, option_name("new_tokens"), self.new or 0, room + 1 - (longest if generates else 1))
        steps = [Workload("step", (longest,) * batch, past) for batch in self.batches for past in pasts]
        generated = [] if self.new is None else [Workload("generate", row, new=self.new) for row in rows]
        return [*(Workload("prompt", row) for row in rows), *steps, *generated]


def _check_fits(spec: Model, option: str, tokens: int, room: int) -> None:
    if tokens > room:
        raise UserError(
            f"{option} must fit the context of {spec.name}\n  value: {tokens}\n  Use {room} or less."
        )


def _rows(batch: int, length: str) -> tuple[int, ...]:
    """The lengths of the rows of a batch; the lengths of a range are evenly spaced."""
    match = re.fullmatch(r"([1-9]\d{0,6})(?:-([1-9]\d{0,6}))?", length)
    low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if low > high:
        raise UserError(
            f"{option_name('lengths')} must be tokens, or a range of them\n  value: {length!r}\n  Use 128 or 16-128."
        )
    return tuple(high - (high - low) * row // max(1, batch - 1) for row in range(batch))


def token_rows(lengths: Sequence[int], vocabulary: int) -> list[list[int]]:
    """Rows of random tokens of these lengths."""
    return [
        [(7 * position + row) % vocabulary for position in range(length)]
        for row, length in enumerate(lengths)
    ]
