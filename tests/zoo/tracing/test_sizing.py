"""The sizes of a traced graph at several points."""

from __future__ import annotations

from typing import Any

import pytest

from specs.language.load import load
from zoo.core.reduced import fewer_layers
from zoo.ops import operation
from zoo.reports.trace import Trace
from zoo.tracing import sizing
from zoo.tracing.sizing import SizedGraph
from zoo.tracing.tasks import training_task
from zoo.tracing.traced_model import TracedModel

POINTS = [{"B": 2, "T": 64}, {"B": 3, "T": 64}, {"B": 2, "T": 128}, {"B": 2, "T": 64}]


@pytest.mark.parametrize("name", ["tiny-gpt", "recurrentgemma-2b"])
def test_values_at_several_points_are_those_at_each_point(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = fewer_layers(load(name), layers=1)
    task, calls = training_task(spec), list[Any]()
    graph = TracedModel(spec).trace(task).graph
    points = [{"batch_size": point["B"], "sequence_length": point["T"]} for point in POINTS]
    alone = [SizedGraph(graph, task.inputs, [point]).by_point[0] for point in points]

    def counted(target: Any, args: Any, kwargs: Any) -> Any:
        calls.append(target)
        return operation.result_info(target, args, kwargs)

    monkeypatch.setattr(sizing, "result_info", counted)
    together = SizedGraph(graph, task.inputs, points).by_point
    assert [dict(infos) for infos in together] == [dict(infos) for infos in alone]
    assert len(calls) < 3 * len(Trace(graph, task).calls)  # twice the same point is one


def test_calls_without_flops_cost_nothing() -> None:
    spec = fewer_layers(load("tiny-gpt"), layers=1)
    task = training_task(spec)
    trace = Trace(TracedModel(spec).trace(task).graph, task)
    transposes = [call for call in trace.calls if call.target == "transpose"]
    assert transposes
    assert not any(part for call in transposes for part in trace.flops(call))
