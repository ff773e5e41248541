"""The sizes of a report."""

from __future__ import annotations

from dataclasses import dataclass

from specs.base.errors import UserError, option_name
from specs.model.model import Model
from specs.model.stack import Stack as StackSpec

DEFAULT_LENGTH = 1024
"""Tokens per sequence by default; fewer for a model with a shorter context."""


@dataclass(frozen=True)
class Lengths:
    """The sizes of a report: batch, tokens per sequence, past tokens of a decoding step, encoder tokens, or vectors of the one
    image per sequence."""

    batch: int
    length: int
    past: int
    source: int

    @classmethod
    def of(
        cls,
        spec: Model,
        batch: int = 1,
        length: int | None = None,
        past: int | None = None,
        source: int | None = None,
    ) -> Lengths:
        """The sizes of a report, with defaults for missing ones.

        Raises :class:`specs.base.errors.UserError` for sizes that do not fit or do not apply to the model.
        """
        if spec.decoder is None and past is not None:
            raise UserError(
                f"{option_name('past')} applies only to decoders, and {spec.name} is an encoder\n  value: {past}\n  Leave it out."
            )
        if spec.architecture != "encoder-decoder" and source is not None:
            article = "an" if spec.architecture == "encoder" else "a"
            raise UserError(
                f"{option_name('source_length')} applies only to encoder-decoders, and {spec.name} is {article} {spec.architecture}\n"
                f"  value: {source}\n  Use {option_name('length')}."
            )
        last, first = spec.last_stack, spec.image or spec.first_stack
        tokens = _length(spec, last, option_name("length"), length)
        read = _length(spec, first, option_name("source_length"), source)
        room = spec.context_length_of(last)
        if past is None:
            past = min(tokens, room - 1) if room else tokens
        elif room and past > room - 1:
            raise UserError(_too_long(spec, option_name("past"), past, room - 1))
        return cls(batch, tokens, past, read)

    def symbols(self, stage: str) -> dict[str, int]:
        """The sizes of a stage by symbol."""
        tokens = {"T": 1, "P": self.past} if stage == "step" else {"T": self.length, "P": 0}
        return {"B": self.batch, "S": self.source, **tokens}

    def tokens(self, stage: str) -> int:
        """The number of tokens that a stage processes."""
        return self.batch * {"step": 1, "encode": self.source, "see": self.source}.get(stage, self.length)


def _length(spec: Model, stack: StackSpec, option: str, wanted: int | None) -> int:
    most, fixed = spec.context_length_of(stack), not spec.embedding_of(stack).any_length
    if wanted is None:
        return most if fixed and most else min(DEFAULT_LENGTH, most or DEFAULT_LENGTH)
    if fixed and wanted != most:
        raise UserError(
            f"{option} of {spec.name} is fixed: its embedding produces {most} vectors\n  value: {wanted}\n  Leave it out."
        )
    if most and wanted > most:
        raise UserError(_too_long(spec, option, wanted, most))
    return wanted


def _too_long(spec: Model, option: str, wanted: int, most: int) -> str:
    return f"{option} must fit the context of {spec.name}\n  value: {wanted}\n  Use {most} or less."
