"""The exact form of an exported graph: the same graph without rounding of activations.

It reads the same data file. Half floats become float32 in every tensor, and constants take the values that they had before they
were stored in half precision. Inputs of integer products are scaled and shifted but not rounded (in 16-bit inputs, only the
second 8 bits remain unrounded: :mod:`exporters.verification.exact.qdq`). MatMulNBits and QMoE work in float32. Everything else
stays as written, so a wrong scale, a swapped zero point or a missing bias shows at the tolerance of float32 in every precision.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
import torch
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from exporters.graph.content import Computed
from exporters.graph.dtypes import DTYPES
from exporters.graph.proto_bodies import widen_bodies
from exporters.graph.values import STATED_ROUNDING, Graph
from exporters.target import targets
from exporters.target.mxfp4_experts import reads_mxfp4
from exporters.target.session_options import FLOAT32_LEVEL
from exporters.verification.exact.mixture import exact_mixture
from exporters.verification.exact.mxfp4_weights import mxfp4_weights
from exporters.verification.exact.qdq import StaticInputs

FLOAT = TensorProto.FLOAT
_KEPT_TYPES = frozenset({FLOAT, TensorProto.INT64, TensorProto.BOOL})
"""The element types of the results that are typed and shaped alike in both forms."""

SCALE, ZERO = 2.0**-10, 1.0
"""The scale and the zero point of integer products: neither 1 nor 0, so that a missing one shows. The zero point is added and
subtracted in float64, so that small inputs lose no digits."""


Constants = Mapping[str, np.ndarray[Any, Any]]
"""The values of constants before they were stored in half precision, by name."""


def unrounded_values(graph: Graph) -> Constants:
    """The exact values of a graph's half-precision constants."""
    tables = {
        name: parameter.content.make().numpy()
        for name, parameter in graph.parameters.items()
        if isinstance(parameter.content, Computed) and parameter.dtype in targets.HALF
    }
    return {**graph.unrounded, **tables}


@contextmanager
def exact_file(
    path: Path, half: torch.dtype | None = None, unrounded: Constants = MappingProxyType({})
) -> Iterator[Path]:
    """Yield the path of the exact form of a graph, a temporary file in the same directory."""
    temporary = path.with_name(f".exact.{path.name}")
    try:
        model = onnx.load(path, load_external_data=False)
        with mxfp4_weights(path, model):
            temporary.write_bytes(exact(model, half, unrounded).SerializeToString())
            yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def exact(model: onnx.ModelProto, half: torch.dtype | None, unrounded: Constants) -> onnx.ModelProto:
    """Return the model with float32 in place of half precision and without rounding to integers."""
    narrow = None if half is None else DTYPES[half]
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    del graph.node[:], graph.value_info[:]
    graph.value_info.extend(_known_results(model.graph, narrow))
    _widen_weights(graph, narrow, unrounded)
    static = StaticInputs.of(model)
    for node in model.graph.node:
        graph.node.extend(static.exact_nodes(node) or _exact_nodes(node, graph, narrow))
    halves = {value.name for value in graph.output if value.type.tensor_type.elem_type == TensorProto.FLOAT16}
    for node in graph.node:
        if node.op_type == "Cast" and node.output[0] in halves:  # scores for a client
            node.attribute[0].i = FLOAT
    for value in (*graph.input, *graph.output):
        if value.type.tensor_type.elem_type == narrow or value.name in halves:
            value.type.tensor_type.elem_type = FLOAT
    return result


def _known_results(graph: GraphProto, narrow: int | None) -> Iterator[ValueInfoProto]:
    """Yield the types and shapes of results: without them, ONNX Runtime takes a second longer to load 2,000 nodes."""
    rounded = {name for node in graph.node if STATED_ROUNDING in node.name for name in node.output}
    for value in graph.value_info:
        known = ValueInfoProto()
        known.CopyFrom(value)
        if known.type.tensor_type.elem_type == narrow:
            known.type.tensor_type.elem_type = FLOAT
        if known.name not in rounded and known.type.tensor_type.elem_type in _KEPT_TYPES:
            yield known


def _widen_weights(graph: GraphProto, narrow: int | None, unrounded: Constants) -> None:
    """Read half-precision weights as stored and cast them; give constants their exact values."""
    inputs = {value.name for value in graph.input}
    for weight in graph.initializer:
        if weight.name in inputs:  # a matrix of an adapter, which is empty by default
            weight.data_type = FLOAT if weight.data_type == narrow else weight.data_type
        elif weight.name in unrounded:
            weight.CopyFrom(numpy_helper.from_array(unrounded[weight.name].astype(np.float32), weight.name))
        elif weight.data_type == narrow:
            stored = f"{weight.name}:stored"
            graph.node.append(helper.make_node("Cast", [stored], [weight.name], to=FLOAT))
            weight.name = stored


def lost_constants(model: onnx.ModelProto, unrounded: Constants) -> Iterator[str]:
    """Yield the constants that half precision cannot hold: stored as 0 or infinity, or with an error larger than rounding."""
    for tensor in model.graph.initializer:
        if tensor.name in unrounded and not tensor.external_data:
            exact_values = unrounded[tensor.name]
            stored = numpy_helper.to_array(tensor).astype(np.float64)
            epsilon = 2.0**-11 if tensor.data_type == TensorProto.FLOAT16 else 2.0**-8
            if not np.all(np.abs(stored - exact_values) <= epsilon * np.abs(exact_values)):
                yield tensor.name


def _exact_nodes(node: NodeProto, graph: GraphProto, narrow: int | None) -> Iterator[NodeProto]:
    """The nodes that replace one."""
    match node.op_type:
        case "DynamicQuantizeLinear":
            yield from _unrounded_codes(node, graph)
        case "MatMulInteger":
            yield from _float_product(node)
        case "QMoE" if reads_mxfp4(node) or _has_8_bits(node):
            yield from exact_mixture(node, graph)
        case _:
            copy = NodeProto()
            copy.CopyFrom(node)
            for attribute in () if STATED_ROUNDING in node.name else copy.attribute:
                _widen_attribute(node.op_type, attribute, narrow)
            widen_bodies(copy, narrow)
            yield copy


def _has_8_bits(mixture: NodeProto) -> bool:
    return any(field.name == "expert_weight_bits" and field.i == 8 for field in mixture.attribute)


def _unrounded_codes(node: NodeProto, graph: GraphProto) -> Iterator[NodeProto]:
    """x / scale + zero in float64, with a fixed scale and zero point."""
    x, (codes, scale, zero) = node.input[0], node.output
    graph.initializer.append(numpy_helper.from_array(np.array(SCALE, np.float32), scale))
    graph.initializer.append(numpy_helper.from_array(np.array(ZERO, np.float64), zero))
    yield helper.make_node("Div", [x, scale], [f"{codes}:scaled"])
    yield helper.make_node("Cast", [f"{codes}:scaled"], [f"{codes}:wide"], to=TensorProto.DOUBLE)
    yield helper.make_node("Add", [f"{codes}:wide", zero], [codes], name=node.name)


def _float_product(node: NodeProto) -> Iterator[NodeProto]:
    """(codes - zero) @ (weight - zero), with differences of codes in float64; missing zero points are 0."""
    operands = []
    zeros = [*node.input[2:], "", ""]
    for operand, zero, dtype in zip(node.input[:2], zeros, (TensorProto.DOUBLE, FLOAT), strict=False):
        wide = f"{node.output[0]}:{operand}"
        yield helper.make_node("Cast", [operand], [wide], to=dtype)
        if zero:
            yield helper.make_node("Cast", [zero], [f"{wide}:zero"], to=dtype)
            yield helper.make_node("Sub", [wide, f"{wide}:zero"], [f"{wide}:centred"])
            wide = f"{wide}:centred"
        if dtype != FLOAT:
            yield helper.make_node("Cast", [wide], [f"{wide}:float"], to=FLOAT)
            wide = f"{wide}:float"
        operands.append(wide)
    yield helper.make_node("MatMul", operands, [node.output[0]], name=node.name)


def _widen_attribute(operation: str, attribute: AttributeProto, narrow: int | None) -> None:
    if operation == "Cast" and attribute.name == "to" and attribute.i == narrow:
        attribute.i = FLOAT
    if operation in ("MatMulNBits", "QMoE") and attribute.name == "accuracy_level":
        attribute.i = FLOAT32_LEVEL
    if attribute.type == AttributeProto.TENSOR and attribute.t.data_type == narrow:
        wide = numpy_helper.to_array(attribute.t).astype(np.float32)
        attribute.t.CopyFrom(numpy_helper.from_array(wide, attribute.t.name))
