"""The element types of the values of a graph."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from exporters.target import onnx_schemas
from exporters.target.targets import CONTRIB

_TYPED_BY = {"GatherBlockQuantized": 2, "MatMulIntegerToFloat": 2}
"""The index of the input with the element type of the first result, for operations of ONNX Runtime; 0 for all others."""


def element_types(model: onnx.ModelProto) -> dict[str, str]:
    """The element types by the names of values, such as ``float16``, including the graphs inside operations.

    Values of unknown type are missing.
    """
    inferred = onnx_schemas.inferred(model)
    types: dict[str, str] = {}
    _collect(inferred.graph, types)
    return types


def _collect(graph: onnx.GraphProto, types: dict[str, str]) -> None:
    for value in (*graph.input, *graph.value_info, *graph.output):
        if value.type.tensor_type.elem_type:
            types[value.name] = _name(value.type.tensor_type.elem_type)
    for tensor in graph.initializer:
        types[tensor.name] = _name(tensor.data_type)
    for node in graph.node:
        if node.domain == CONTRIB:
            typed_by = node.input[_TYPED_BY.get(node.op_type, 0)]
            if node.output[0] and typed_by in types:
                types.setdefault(node.output[0], types[typed_by])
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _collect(attribute.g, types)


def _name(code: int) -> str:
    return TensorProto.DataType.Name(code).lower()
