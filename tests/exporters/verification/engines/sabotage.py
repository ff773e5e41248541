"""Graphs made wrong on purpose, for one engine alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import onnx

from exporters.verification.exact.graph import exact_file

Change = Callable[[onnx.NodeProto, onnx.GraphProto], bool]


def a_scale(node: onnx.NodeProto, graph: onnx.GraphProto) -> bool:
    """Change a number that a product is scaled by."""
    constants = {weight.name: weight for weight in graph.initializer if not weight.external_data}
    for weight in filter(None, map(constants.get, node.input if node.op_type == "Mul" else ())):
        value = onnx.numpy_helper.to_array(weight) * 1.01
        weight.CopyFrom(onnx.numpy_helper.from_array(value.astype("float32"), weight.name))
        return True
    return False


def a_mask(node: onnx.NodeProto, graph: onnx.GraphProto) -> bool:
    """Swap what a mask keeps and what it hides."""
    if node.op_type != "Where":
        return False
    node.input[1], node.input[2] = node.input[2], node.input[1]
    return True


def an_axis(node: onnx.NodeProto, graph: onnx.GraphProto) -> bool:
    """Normalize over another axis."""
    for attribute in node.attribute if node.op_type == "Softmax" else ():
        attribute.i = 1
        return True
    return False


def an_unknown_operator(node: onnx.NodeProto, graph: onnx.GraphProto) -> bool:
    """Ask for an operator that nobody has."""
    node.op_type = "Unheard"
    return True


@contextmanager
def sabotaged(change: Change, *arguments: Any) -> Iterator[Path]:
    """Yield the exact form of a graph, changed."""
    with exact_file(*arguments) as path:
        change_file(path, change)
        yield path


def change_file(path: Path, change: Change) -> None:
    """Change a graph in its file."""
    model = onnx.load(path, load_external_data=False)
    assert any(change(node, model.graph) for node in model.graph.node)
    path.write_bytes(model.SerializeToString())
