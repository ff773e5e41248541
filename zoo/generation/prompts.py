"""Validation of prompts: token ids within the vocabulary, no more than the context takes."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TypeGuard

from specs.base.errors import UserError, option_name
from specs.model.model import Model
from specs.model.stack import Stack


def check_prompts(spec: Model, stack: Stack, prompts: Sequence[Sequence[int]], room: int = 0) -> None:
    """Raise :class:`specs.base.errors.UserError` unless a stack takes these prompts and ``room`` more tokens."""
    vocabulary, most = spec.vocab_size or 0, spec.context_length_of(stack)
    _check_type(prompts)
    for prompt in prompts:
        if not prompt:
            raise UserError(
                f"A prompt must have at least one token\n  value: []\n  Pass {option_name('text')} or {option_name('ids')} with at least one token."
            )
        wrong = [token for token in prompt if not 0 <= token < vocabulary]
        if wrong:
            raise UserError(
                f"Token ids must be below the vocab_size of {spec.name}, which is {vocabulary}\n"
                f"  value: {wrong[0]}\n  Use 0 to {vocabulary - 1}."
            )
        if most is not None and len(prompt) + room > most:
            more = " and the generated tokens" if room else ""
            raise UserError(
                f"A prompt{more} must fit the context of {spec.name}, which is {most} tokens\n"
                f"  value: {len(prompt)} tokens\n  Use {most - room} or fewer."
            )


def _check_type(prompts: object) -> None:
    """Raise :class:`specs.base.errors.UserError` unless these are lists of whole numbers."""
    rows = prompts if _is_list(prompts) else [prompts]
    wrong = [type(row).__name__ for row in rows if not _is_list(row) or not all(map(_is_integer, row))]
    if wrong or not rows:
        raise UserError(
            f"Prompts must be lists of token ids\n  value: {wrong[0] if wrong else '[]'}\n"
            "  Use [[1, 2, 3]], a list for each prompt: ids.tolist() of a tensor or an array."
        )


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral)


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def weights_missing(spec: Model) -> UserError:
    """The error of a call of a model that is on the meta device."""
    return UserError(
        f'{spec.name} was built without weights: pass weights="random" or a checkpoint to zoo.build.'
    )


def check_reads_alone(spec: Model) -> None:
    """Raise :class:`specs.base.errors.UserError` for a decoder that reads the hidden states of another model."""
    if spec.reads_hidden_states:
        raise UserError(
            f"{spec.name} reads the hidden states of another model, and does not run alone\n"
            f"  value: embedding {spec.embedding_of(spec.last_stack).kind}\n"
            f"  Export that model with {option_name('outputs')} last_hidden_state, and pass this export to it as {option_name('draft')}."
        )
