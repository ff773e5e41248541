"""Checks of token ids against a model, and the sizes of its inputs."""

from __future__ import annotations

from torch import Tensor

from exporters.preprocessing.fitting import input_shape
from specs.base.errors import UserError
from specs.model.model import Model


def check_vocabulary(spec: Model, where: str, ids: Tensor | None, remedy: str) -> None:
    """Raise :class:`specs.base.errors.UserError` for ids outside the vocabulary."""
    vocabulary = spec.vocab_size or 0
    if ids is None or not ids.numel():
        return
    worst = ids.max() if int(ids.max()) >= vocabulary else ids.min()
    if not 0 <= int(worst) < vocabulary:
        raise UserError(
            f"{where}: token ids must be below the vocab_size of {spec.name}, which is {vocabulary}\n"
            f"  value: {int(worst)}\n  {remedy}"
        )


def check_length(spec: Model, where: str, ids: Tensor | None) -> None:
    """Raise :class:`specs.base.errors.UserError` for rows longer than the context."""
    limit = spec.context_length_of(spec.first_stack)
    if ids is not None and limit is not None and ids.shape[1] > limit:
        raise UserError(
            f"{where}: rows must fit the context of {spec.name}, which is {limit} tokens\n"
            f"  value: {ids.shape[1]} tokens\n  Give shorter rows."
        )


def input_sizes(spec: Model) -> tuple[int | None, ...]:
    """The sizes of one input after the batch; None for variable lengths."""
    embedding = spec.embedding_of(spec.first_stack)
    if embedding.takes_tokens:
        return (None,)
    return (None, *embedding.input_shape(1)[1:]) if embedding.any_length else input_shape(spec)
