"""The exact form of QuantizeLinear and DequantizeLinear of activations: as written, without rounding.

If the residual of a rounding is rounded again, the first keeps its rounding, because the second would otherwise be
all zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx
from onnx import NodeProto, TensorProto, helper

FLOAT = TensorProto.FLOAT


@dataclass(frozen=True)
class StaticInputs:
    """The results of QuantizeLinear in a graph, and the subset that stay integers."""

    codes: frozenset[str]
    rounded: frozenset[str]

    @staticmethod
    def of(model: onnx.ModelProto) -> StaticInputs:
        """Find them: the residual of a rounding is a difference from the output of DequantizeLinear."""
        nodes = model.graph.node
        subtracted = {name for node in nodes if node.op_type == "Sub" for name in node.input[1:]}
        codes = {node.output[0] for node in nodes if node.op_type == "QuantizeLinear"}
        rounded = {
            node.input[0]
            for node in nodes
            if node.op_type == "DequantizeLinear" and node.output[0] in subtracted
        }
        return StaticInputs(frozenset(codes), frozenset(codes & rounded))

    def exact_nodes(self, node: NodeProto) -> Iterator[NodeProto] | None:
        """The nodes that replace one; None for others, such as DequantizeLinear of weights."""
        if node.op_type == "QuantizeLinear" and node.output[0] not in self.rounded:
            return _unrounded(node)
        if node.op_type == "DequantizeLinear" and node.input[0] in self.codes:
            return _values(node)
        return None


def _unrounded(node: NodeProto) -> Iterator[NodeProto]:
    """x / scale + zero."""
    (x, scale, zero), codes = node.input, node.output[0]
    yield helper.make_node("Cast", [zero], [f"{codes}:zero"], to=FLOAT)
    yield helper.make_node("Div", [x, scale], [f"{codes}:scaled"])
    yield helper.make_node("Add", [f"{codes}:scaled", f"{codes}:zero"], [codes], name=node.name)


def _values(node: NodeProto) -> Iterator[NodeProto]:
    """(codes - zero) * scale, in operations that the runtime does not fuse into an integer product."""
    (codes, scale, zero), values = node.input, node.output[0]
    yield helper.make_node("Cast", [codes], [f"{values}:codes"], to=FLOAT)
    yield helper.make_node("Cast", [zero], [f"{values}:zero"], to=FLOAT)
    yield helper.make_node("Sub", [f"{values}:codes", f"{values}:zero"], [f"{values}:centred"])
    yield helper.make_node("Mul", [f"{values}:centred", scale], [values], name=node.name)
