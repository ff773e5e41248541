"""A model whose costs were counted is left for one other reading, and its graphs are those of other dtypes without casts."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import fx

from specs.language.load import load
from specs.model.model import Model
from zoo.core.reduced import fewer_layers
from zoo.reports.costs import costs
from zoo.tracing.float_dtype import HALF
from zoo.tracing.tasks import stored_tasks, tasks
from zoo.tracing.traced_model import TracedModel
from zoo.tracing.tracer import SemanticCall, is_static


def small(width: int) -> Model:
    return fewer_layers(load("gpt2", [f"d_model={width}"]), 1)


def test_a_model_that_was_costed_is_taken_once() -> None:
    costs(load("gpt2", ["d_model=132"]))
    first, second = (TracedModel.taken(small(132), HALF) for _ in range(2))
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


@pytest.mark.parametrize(
    "name", ["gpt2", "t5-small", "clip-vit-b32", "qwen3.5-35b-a3b-text", "granite-4.0-h-350m"]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_graph_of_another_dtype_has_the_calls_of_its_own_trace(name: str, dtype: torch.dtype) -> None:
    """The values, with shapes and dtypes in both runs, and the semantic calls that they are results of; casts to the own dtype aside."""
    spec = fewer_layers(load(name), 1)
    half, own = TracedModel(spec, HALF), TracedModel(spec, dtype)
    for task, other in zip(
        *(stored_tasks(traced.model, spec, traced.outputs) for traced in (half, own)), strict=True
    ):
        assert _calls(half.trace(task).in_dtype(dtype).graph) == _calls(
            own.trace(other).in_dtype(dtype).graph
        )


def _calls(graph: fx.Graph) -> list[tuple[Any, ...]]:
    """All calls without the names of values and the lines of code."""
    numbers = {node: number for number, node in enumerate(graph.nodes)}

    def plain(value: Any) -> Any:
        if isinstance(value, float):
            return float  # such as the least value of a dtype
        return numbers[value] if isinstance(value, fx.Node) else value

    def call(call: SemanticCall) -> str:
        return f"{call.function} {fx.node.map_aggregate((call.args, call.kwargs), plain)} {call.index}"

    return [
        (
            node.op,
            str(node.target),
            str(fx.node.map_aggregate((node.args, node.kwargs), plain)),
            node.meta.get("info"),
            node.meta.get("info") and is_static(node),
            node.meta.get("path"),
            [*map(call, node.meta.get("semantic_calls", ()))],
        )
        for node in graph.nodes
    ]
