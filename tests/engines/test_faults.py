"""Faults of engines, each with its smallest graph: a test that fails here says that an engine has mended one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from exporters.verification.engines.find import interpreter_of
from exporters.verification.engines.process import EngineError, started
from exporters.verification.engines.table import engine_named

pytestmark = pytest.mark.engines

FLOAT = TensorProto.FLOAT

Run = Callable[..., np.ndarray[Any, Any]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs nodes with input x and output y, both float, on an engine."""

    def on(
        engine: str, x: np.ndarray[Any, Any], *nodes: onnx.NodeProto, **constants: Any
    ) -> np.ndarray[Any, Any]:
        weights = [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()]
        given = helper.make_tensor_value_info("x", FLOAT, ["n"])
        graph = helper.make_graph(
            nodes, "graph", [given], [helper.make_tensor_value_info("y", FLOAT, None)], weights
        )
        path = tmp_path / "model.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
        python = interpreter_of(engine_named(engine))
        assert python is not None, f"{engine} is missing: run `make engines`"
        with started(engine_named(engine), python) as process:
            options: dict[str, Any] = {"data": [], "entries": {}, "environment": {}}
            process.ask(do="load", graph="graph", path=str(path), options=options)
            return process.run("graph", {"x": x})["y"]

    return on


def test_openvino_truncates_to_bfloat16_where_a_size_is_symbolic(run: Run) -> None:
    x = np.array([10.91796875], np.float32)  # between 10.875 and 10.9375
    nodes = (
        helper.make_node("Cast", ["x"], ["half"], to=TensorProto.BFLOAT16),
        helper.make_node("Cast", ["half"], ["y"], to=FLOAT),
    )
    assert run("onnxruntime", x, *nodes) == run("onnx-reference", x, *nodes) == [10.9375]
    assert run("openvino", x, *nodes) == [10.875]


def test_openvino_takes_no_scan_that_reads_a_value_computed_outside(run: Run) -> None:
    body = helper.make_graph(
        [
            helper.make_node("Add", ["before", "outside"], ["scaled"]),
            helper.make_node("Add", ["scaled", "each"], ["after"]),
            helper.make_node("Identity", ["after"], ["shown"]),
        ],
        "body",
        [helper.make_tensor_value_info(name, FLOAT, []) for name in ("before", "each")],
        [helper.make_tensor_value_info(name, FLOAT, []) for name in ("after", "shown")],
    )
    nodes = (
        helper.make_node("ReduceMax", ["x"], ["outside"], keepdims=0),
        helper.make_node("Scan", ["start", "x"], ["last", "y"], body=body, num_scan_inputs=1),
    )
    x, start = np.array([1, 2], np.float32), np.zeros((), np.float32)
    np.testing.assert_array_equal(run("onnx-reference", x, *nodes, start=start), np.array([3, 7], np.float32))
    with pytest.raises(EngineError, match=r"Scan"):
        run("openvino", x, *nodes, start=start)


def test_the_reference_evaluator_gathers_from_64_elements_at_most(run: Run) -> None:
    node = helper.make_node("GatherElements", ["x", "places"], ["y"], axis=0)
    for count in (64, 65):
        x, places = np.arange(count, dtype=np.float32), np.zeros(count, np.int64)
        np.testing.assert_array_equal(run("onnxruntime", x, node, places=places), np.zeros(count))
    with pytest.raises(EngineError, match="at most 64"):
        run("onnx-reference", x, node, places=places)
