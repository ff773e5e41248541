"""The graphs inside the operations of an ONNX model, such as the body of a Scan."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import AttributeProto, GraphProto, NodeProto, TensorProto


def bodies(node: NodeProto) -> Iterator[GraphProto]:
    """Yield the graphs inside an operation, and those inside their operations."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
            for inner in attribute.g.node:
                yield from bodies(inner)


def widen_bodies(node: NodeProto, narrow: int | None) -> None:
    """Replace a float type by float32 in the graphs inside an operation."""
    for body in bodies(node):
        for value in (*body.input, *body.output):
            if value.type.tensor_type.elem_type == narrow:
                value.type.tensor_type.elem_type = TensorProto.FLOAT
        for inner in body.node:
            for attribute in inner.attribute:
                if inner.op_type == "Cast" and attribute.name == "to" and attribute.i == narrow:
                    attribute.i = TensorProto.FLOAT
