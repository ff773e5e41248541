"""A model whose costs were counted is left for one other reading."""

from __future__ import annotations

import torch

from specs.language.load import load
from specs.model.model import Model
from zoo.core.reduced import fewer_layers
from zoo.reports.costs import costs
from zoo.tracing.tasks import tasks
from zoo.tracing.traced_model import TracedModel


def small(width: int) -> Model:
    return fewer_layers(load("gpt2", [f"d_model={width}"]), 1)


def test_a_model_that_was_costed_is_taken_once() -> None:
    costs(load("gpt2", ["d_model=132"]))
    first, second = (TracedModel.taken(small(132), torch.float32) for _ in range(2))
    (task,) = tasks(first.model, small(132))
    assert first.trace(task) is first.trace(task)
    assert first._traces.keys() == {(task.name, task.inputs)}
    assert not second._traces


def test_a_model_of_another_spec_or_dtype_is_not_taken() -> None:
    left = TracedModel(small(144))
    left.hand_on()
    assert TracedModel.taken(small(156), torch.float32) is not left
    assert TracedModel.taken(small(144), torch.float16) is not left
    assert TracedModel.taken(small(144), torch.float32) is left


def test_the_last_two_models_are_left() -> None:
    left = [TracedModel(small(width)) for width in (144, 156, 168)]
    for model in left:
        model.hand_on()
    taken = [TracedModel.taken(model.spec, model.dtype) for model in left]
    assert [model is again for model, again in zip(left, taken, strict=True)] == [False, True, True]
