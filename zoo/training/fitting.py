"""Adapt a spec to a task: its vocabulary, and a head that scores the vocabulary for each token."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

from specs.base.errors import UserError, option_name
from specs.model.model import Model
from zoo.training.task import TrainingTask
from zoo.training.task_names import MASKED_BYTE, NEXT_BYTE


def fitted(spec: Model, task: TrainingTask) -> Model:
    """The spec with the vocabulary of a task; a head that does not score the vocabulary is replaced.

    Raises :class:`UserError` if the task does not suit its architecture, inputs or context length.
    """
    _check_architecture(spec, task)
    _check_inputs(spec, task)
    _check_lengths(spec, task)
    data = spec.model_dump(exclude={"expect"})
    data["vocab_size"] = task.vocabulary
    if not spec.head.scores_vocabulary:
        data["head"] = {
            "kind": "language_modeling",
            "tie_embeddings": spec.embedding_width == spec.output_width,
        }
    return Model.model_validate(data)


def _check_architecture(spec: Model, task: TrainingTask) -> None:
    if spec.architecture in task.architectures:
        return
    if spec.architecture in ("dual-encoder", "vision-language"):
        raise UserError(
            f"{spec.name} cannot be trained on {task.name}: a model must read tokens alone, in one encoder, one decoder, or both\n"
            f"  architecture: {spec.architecture}\n  Use a model of another architecture."
        )
    reason, other = (
        ("every token of an encoder sees those after it", MASKED_BYTE)
        if spec.architecture == "encoder"
        else ("it predicts what follows, not what is masked", NEXT_BYTE)
    )
    raise UserError(
        f"{spec.name} cannot be trained on {task.name}, which is for {' and '.join(task.architectures)} models: {reason}\n"
        f"  architecture: {spec.architecture}\n  Use {option_name('task')} {other}, copy or reverse."
    )


def _check_inputs(spec: Model, task: TrainingTask) -> None:
    for name, stack in spec.stacks():
        embedding = spec.embedding_of(stack)
        if not embedding.takes_tokens:
            raise UserError(
                f"{spec.name} cannot be trained on {task.name}: its {name} must take tokens alone\n"
                f"  embedding: {embedding.kind}\n  Use a model whose inputs are tokens."
            )


def _check_lengths(spec: Model, task: TrainingTask) -> None:
    def needed(length: int) -> int:
        return replace(task, length=length).lengths(spec.architecture)[name]

    for name, stack in spec.stacks():
        context = spec.context_length_of(stack)
        if context is not None and needed(task.length) > context:
            fits = bisect_right(range(1, task.length), context, key=needed)
            shorter = f"Use {option_name('task_length')} {fits} or less, or set " if fits else "Set "
            field = "context_length" if stack.context_length is None else f"{name}.context_length"
            raise UserError(
                f"{spec.name}: {task.name} of {option_name('task_length')} {task.length} must fit the context of its {name}\n"
                f"  value: {needed(task.length)} tokens, and the context has {context}\n"
                f"  {shorter}{field}={needed(task.length)}."
            )
