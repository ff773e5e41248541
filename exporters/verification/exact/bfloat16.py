"""Emulation of a bfloat16 graph in float32, for providers without bfloat16 kernels.

Weights are read from the same data file. Every operation computes in float32, and every bfloat16 result of the graph
is rounded to bfloat16, as kernels with float32 accumulators do. The graphs inside operations are not rounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx
from onnx import TensorProto, ValueInfoProto, helper

from exporters.graph.proto_bodies import widen_bodies
from exporters.target import onnx_schemas

BFLOAT16, FLOAT = TensorProto.BFLOAT16, TensorProto.FLOAT


@contextmanager
def lifted_file(path: Path) -> Iterator[Path]:
    """Yield the path of the same graph in float32, a temporary file in the same directory."""
    temporary = path.with_name(f".lifted.{path.name}")
    try:
        temporary.write_bytes(lifted(onnx.load(path, load_external_data=False)).SerializeToString())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def lifted(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the graph with bfloat16 replaced by float32, in its inputs and outputs as well."""
    typed = onnx_schemas.inferred(model)
    known = [*typed.graph.value_info, *typed.graph.output]
    rounded = {value.name for value in known if value.type.tensor_type.elem_type == BFLOAT16}
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    del graph.node[:], graph.value_info[:]
    graph.value_info.extend(_known_results(typed.graph.value_info))
    for weight in graph.initializer:
        if weight.data_type == BFLOAT16:
            stored = f"{weight.name}:bfloat16"
            graph.node.append(helper.make_node("Cast", [stored], [weight.name], to=FLOAT))
            weight.name = stored
    for node in model.graph.node:
        made = [name for name in node.output if name in rounded]
        copy = graph.node.add()
        copy.CopyFrom(node)
        for index, name in enumerate(node.output):
            if name in made:
                copy.output[index] = f"{name}:exact"
        for attribute in copy.attribute:
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == BFLOAT16:
                attribute.i = FLOAT
        widen_bodies(copy, BFLOAT16)
        for name in made:
            graph.node.append(helper.make_node("Cast", [f"{name}:exact"], [f"{name}:bfloat16"], to=BFLOAT16))
            graph.node.append(helper.make_node("Cast", [f"{name}:bfloat16"], [name], to=FLOAT))
    for value in (*graph.input, *graph.output):
        if value.type.tensor_type.elem_type == BFLOAT16:
            value.type.tensor_type.elem_type = FLOAT
    return result


def _known_results(values: Iterable[ValueInfoProto]) -> Iterator[ValueInfoProto]:
    """Yield the types and shapes of results: without them, ONNX Runtime takes 19 s instead of 3 s to load 6,000 nodes."""
    for value in values:
        known = ValueInfoProto()
        known.CopyFrom(value)
        if value.type.tensor_type.elem_type == BFLOAT16:
            known.name = f"{value.name}:bfloat16"
            yield known
            known.name, known.type.tensor_type.elem_type = value.name, FLOAT
        yield known
