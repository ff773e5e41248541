"""A spec made fit for a task: with the task's vocabulary, and a head that scores it for each token."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

from specs.errors import UserError, option_name
from specs.head import VocabularyHead
from specs.model import Model
from zoo.training.names import MASKED_BYTE, NEXT_BYTE
from zoo.training.task import Task


def fitted(spec: Model, task: Task) -> Model:
    """The spec with the vocabulary of a task; a head that scores no vocabulary gives way to one that does.

    Raises :class:`UserError` where the task is not for its architecture, for what goes into it, or for its context.
    """
    _check_architecture(spec, task)
    _check_inputs(spec, task)
    _check_lengths(spec, task)
    data = spec.model_dump(exclude={"expect"})
    data["vocab_size"] = task.vocabulary
    if not isinstance(spec.head, VocabularyHead):
        data["head"] = {
            "kind": "language_modeling",
            "tie_embeddings": spec.embedding_width == spec.d_model,
        }
    return Model.model_validate(data)


def _check_architecture(spec: Model, task: Task) -> None:
    if spec.architecture in task.architectures:
        return
    reason, other = (
        ("every token of an encoder sees those after it", MASKED_BYTE)
        if spec.architecture == "encoder"
        else ("it predicts what follows, not what is masked", NEXT_BYTE)
    )
    raise UserError(
        f"{spec.name} cannot be trained on {task.name}, which is for {' and '.join(task.architectures)} models: {reason}\n"
        f"  architecture: {spec.architecture}\n  {option_name('task')} {other}, copy or reverse would work"
    )


def _check_inputs(spec: Model, task: Task) -> None:
    for name, stack in spec.stacks():
        embedding = spec.embedding_of(stack)
        if not embedding.takes_tokens:
            raise UserError(
                f"{spec.name} cannot be trained on {task.name}: its {name} must take tokens\n"
                f"  embedding: {embedding.kind}\n  a model of texts would work"
            )


def _check_lengths(spec: Model, task: Task) -> None:
    def needed(length: int) -> int:
        return replace(task, length=length).lengths(spec.architecture)[name]

    for name, stack in spec.stacks():
        context = spec.context_length_of(stack)
        if context is not None and needed(task.length) > context:
            fits = bisect_right(range(1, task.length), context, key=needed)
            shorter = f"{option_name('length')} {fits} or less would work, or " if fits else ""
            place = "context_length" if stack.context_length is None else f"{name}.context_length"
            raise UserError(
                f"{spec.name}: {task.name} of {option_name('length')} {task.length} must fit the context of its {name}\n"
                f"  value: {needed(task.length)} tokens, and the context has {context}\n"
                f"  {shorter}{option_name('set')} {place}={needed(task.length)}"
            )
