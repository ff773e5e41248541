"""What may go into a model: token ids of its vocabulary, no more than its context takes."""

from __future__ import annotations

from collections.abc import Sequence

from specs.errors import UserError, option_name
from specs.model import Model
from specs.stack import Stack


def check_prompts(spec: Model, stack: Stack, prompts: Sequence[Sequence[int]], room: int = 0) -> None:
    """Raise :class:`specs.errors.UserError` unless a stack takes these prompts and ``room`` more tokens."""
    embedding = spec.embedding_of(stack)
    if not embedding.takes_tokens:
        raise UserError(
            f"{spec.name} takes {embedding.input_name}, and zoo run has tokens to give\n"
            f"  run its graph with onnxruntime, or build a model of kind: tokens"
        )
    vocabulary, most = spec.vocab_size or 0, spec.context_length_of(stack)
    for prompt in prompts:
        if not prompt:
            raise UserError(
                f"a prompt must have at least one token\n  value: []\n  give {option_name('text')} or {option_name('ids')} with some"
            )
        wrong = [token for token in prompt if not 0 <= token < vocabulary]
        if wrong:
            raise UserError(
                f"token ids must be below the vocab_size of {spec.name}, which is {vocabulary}\n"
                f"  value: {wrong[0]}\n  0 to {vocabulary - 1} would work"
            )
        if most is not None and len(prompt) + room > most:
            more = " and what follows" if room else ""
            raise UserError(
                f"a prompt{more} must fit the context of {spec.name}, which is {most} tokens\n"
                f"  value: {len(prompt)} tokens\n  {most - room} or fewer would work"
            )
