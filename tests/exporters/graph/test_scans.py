"""Scans of portable graphs are those that every engine takes."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
import pytest
from onnx import AttributeProto, GraphProto, NodeProto

from exporters.graph.proto_bodies import bodies
from exporters.steps.graphs import Graphs
from exporters.steps.options import ExportOptions
from exporters.steps.plan import Plan
from tests.exporters.reduced_presets import structure
from tests.thinned import one_in

RECURRENT = [
    "bamba-9b",  # states of heads, in chunks
    "gpt-oss-120b",  # experts with biases
    "granite-4.0-h-tiny",  # experts beside states
    "llama-4-scout-17b-16e-text",  # experts whose inputs are weighted
    "mamba-1.4b",  # a state of every channel
    "nllb-moe-54b",
    "qwen3-next-80b-a3b",  # delta rules
    "recurrentgemma-2b",
]


def scans(preset: str, precision: str) -> Iterator[tuple[GraphProto, NodeProto]]:
    """The Scans of a preset's structure, each with its graph."""
    graphs = Graphs.of(Plan.make(structure(preset), ExportOptions.of(target="portable", precision=precision)))
    for message in graphs.messages().values():
        yield from ((message.graph, node) for node in message.graph.node if node.op_type == "Scan")
        for node in message.graph.node:
            if node.op_type == "If":
                for body in bodies(node):
                    yield from ((message.graph, inner) for inner in body.node if inner.op_type == "Scan")


def read_outside(node: NodeProto) -> set[str]:
    """What the bodies of an operation read that is not computed in them."""
    inside = [*bodies(node)]
    own = {given.name for body in inside for given in body.input}
    own |= {name for body in inside for inner in body.node for name in inner.output}
    read = {name for body in inside for inner in body.node for name in inner.input if name}
    return read - own


@one_in(2)
@pytest.mark.parametrize("precision", ["fp32", "int4"])
@pytest.mark.parametrize("preset", RECURRENT)
def test_a_scan_reads_only_constants_from_outside(preset: str, precision: str) -> None:
    """OpenVINO refuses one that reads a computed value."""
    found = [*scans(preset, precision)]
    assert found
    for graph, node in found:
        assert read_outside(node) <= {weight.name for weight in graph.initializer}


def test_a_value_that_every_step_reads_is_a_state_that_stays() -> None:
    for _, node in scans("mixtral-8x22b", "fp32"):
        body = next(each.g for each in node.attribute if each.type == AttributeProto.GRAPH)
        scanned = next(each.i for each in node.attribute if each.name == "num_scan_inputs")
        states = len(node.input) - scanned
        assert states == 4  # the result, the choices, the rows and their weights
        made = {name: inner for inner in body.node for name in inner.output}
        for given, kept in zip(body.input[1:states], body.output[1:states], strict=True):
            assert made[kept.name].op_type == "Identity"
            assert [*made[kept.name].input] == [given.name]
            assert (
                kept.type.tensor_type.elem_type
                == given.type.tensor_type.elem_type
                != onnx.TensorProto.UNDEFINED
            )


@pytest.mark.parametrize("preset", ["bamba-9b", "minimax-text-01", "qwen3-next-80b-a3b"])
def test_padding_of_chunks_states_every_axis(preset: str) -> None:
    """ONNX Runtime moves transpositions wrongly through padding of chosen axes."""
    graphs = Graphs.of(Plan.make(structure(preset), ExportOptions.of(target="portable")))
    nodes = [node for message in graphs.messages().values() for node in message.graph.node]
    every = [*nodes, *(inner for node in nodes for body in bodies(node) for inner in body.node)]
    pads = [node for node in every if node.op_type == "Pad"]
    assert pads
    assert all(len(node.input) < 4 for node in pads)
