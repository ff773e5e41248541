"""Widening of bfloat16 operations without a kernel to float32."""

from __future__ import annotations

from collections.abc import Iterable

import onnx
from onnx import TensorProto, helper

from exporters.target.kernels.element_types import element_types
from exporters.target.kernels.table import KernelTable

NARROW, WIDE = "bfloat16", "float"


def widened(model: onnx.ModelProto, table: KernelTable) -> onnx.ModelProto:
    """Return the graph with bfloat16 nodes that have only a float32 kernel computed in float32.

    ONNX Runtime itself inserts casts for float16 nodes without a kernel, but rejects a graph with such bfloat16 nodes.
    """
    types = element_types(model)
    if NARROW in types.values():
        opset = next(entry.version for entry in model.opset_import if entry.domain == "")
        _widen(model.graph, types, table, opset)
    return model


def _widen(graph: onnx.GraphProto, types: dict[str, str], table: KernelTable, opset: int) -> None:
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _widen(attribute.g, types, table, opset)
        inputs, outputs = ([types.get(name) for name in names] for names in (node.input, node.output))
        wide = [[WIDE if dtype == NARROW else dtype for dtype in side] for side in (inputs, outputs)]
        if NARROW not in inputs or table.computes_node(node, opset, inputs, outputs):
            nodes.append(node)
        elif table.computes_node(node, opset, *wide):
            nodes += _in_float32(node, inputs, outputs)
        else:
            nodes.append(node)
    kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(kept)


def _in_float32(
    node: onnx.NodeProto, inputs: Iterable[str | None], outputs: Iterable[str | None]
) -> list[onnx.NodeProto]:
    """A node between casts of its bfloat16 inputs and outputs."""
    copy, before, after = onnx.NodeProto(), [], []
    copy.CopyFrom(node)
    for index, dtype in enumerate(inputs):
        if dtype == NARROW:
            name = copy.input[index]
            copy.input[index] = f"{node.name}/{name}:float"
            before.append(_cast(name, copy.input[index], TensorProto.FLOAT))
    for index, dtype in enumerate(outputs):
        if dtype == NARROW:
            name = copy.output[index]
            copy.output[index] = f"{node.name}/{name}:float"
            after.append(_cast(copy.output[index], name, TensorProto.BFLOAT16))
    return [*before, copy, *after]


def _cast(source: str, result: str, dtype: int) -> onnx.NodeProto:
    return helper.make_node("Cast", [source], [result], name=f"{result}/Cast", to=dtype)
