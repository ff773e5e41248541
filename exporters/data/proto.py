"""Graphs as ONNX protobuf messages.

(Built with the plain messages of ``onnx``: ``onnx_ir`` imports a computer algebra system, which would cost each
export a quarter of a second.)
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx
import torch
from onnx import helper, numpy_helper

from exporters.data.data_file import Region
from exporters.graph.dtypes import DTYPES
from exporters.graph.values import Body, Graph, Node, Parameter, Value

IR_VERSIONS = {18: 8, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12, 27: 13}
"""The IR version that came with each opset in use: older runtimes refuse newer ones."""

_EXPONENTS_SINCE = 12
"""The first IR version with the type of exponents alone, FLOAT8E8M0."""


def model_proto(graph: Graph, regions: Mapping[str, Region], data_file: str) -> onnx.ModelProto:
    """The ONNX model of a graph whose weights are in ``regions`` of ``data_file``."""
    weights = [_weight(parameter, regions[name], data_file) for name, parameter in graph.parameters.items()]
    constants = [numpy_helper.from_array(array, name) for name, array in graph.constants.items()]
    results = set(graph.outputs)
    known = [v for node in graph.nodes for v in node.outputs if v.dims is not None and v not in results]
    message = helper.make_graph(
        [_node(node) for node in graph.nodes],
        graph.name,
        [_value(value) for value in (*graph.inputs, *graph.adapters)],
        [_value(value) for value in graph.outputs],
        initializer=[*weights, *constants, *map(_no_adapter, graph.adapters)],
        value_info=[_value(value) for value in known],
    )
    opsets = [
        helper.make_opsetid("", graph.opset),
        *(helper.make_opsetid(name, 1) for name in sorted(graph.domains)),
    ]
    has_exponents = any(parameter.dtype == torch.float8_e8m0fnu for parameter in graph.parameters.values())
    ir_version = max(IR_VERSIONS[graph.opset], _EXPONENTS_SINCE if has_exponents else 0)
    return helper.make_model(message, opset_imports=opsets, ir_version=ir_version, producer_name="zoo")


def _node(node: Node) -> onnx.NodeProto:
    return helper.make_node(
        node.op,
        ["" if value is None else value.name for value in node.inputs],
        [value.name for value in node.outputs],
        name=node.name,
        domain=node.domain,
        **{
            name: _body(value) if isinstance(value, Body) else value
            for name, value in node.attributes.items()
        },
    )


def _body(body: Body) -> onnx.GraphProto:
    return helper.make_graph(
        [_node(node) for node in body.nodes],
        body.name,
        [_value(value) for value in body.inputs],
        [_value(value) for value in body.outputs],
    )


def _value(value: Value) -> onnx.ValueInfoProto:
    assert value.dtype is not None
    return helper.make_tensor_value_info(value.name, DTYPES[value.dtype], value.dims)


def _no_adapter(value: Value) -> onnx.TensorProto:
    """The default of an adapter's matrix: rank 0, so that its product is zero."""
    assert value.dtype is not None
    assert value.dims is not None
    sizes = [dim if isinstance(dim, int) else 0 for dim in value.dims]
    return helper.make_tensor(value.name, DTYPES[value.dtype], sizes, [])


def _weight(parameter: Parameter, region: Region, data_file: str) -> onnx.TensorProto:
    tensor = onnx.TensorProto(
        name=parameter.name,
        data_type=DTYPES[parameter.dtype],
        dims=parameter.shape,
        data_location=onnx.TensorProto.EXTERNAL,
    )
    for key, entry in (("location", data_file), ("offset", region.offset), ("length", region.length)):
        tensor.external_data.add(key=key, value=str(entry))
    return tensor
