"""Emulation of experts of 4-bit floats, for providers without a kernel of QMoE for them.

Their codes and exponents are read from the same data file, and the mixture is computed in float32; its result is rounded to the dtype
of the graph. Everything else stays as written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx
import torch
from onnx import NodeProto, TensorProto, helper

from exporters.graph.dtypes import DTYPES
from exporters.target.mxfp4_experts import reads_mxfp4
from exporters.verification.exact.mixture import exact_mixture
from exporters.verification.exact.mxfp4_weights import mxfp4_weights

_FLOATS = (0, 1, 4, 7)
"""The indices of QMoE's inputs in the dtype of the graph: tokens, scores and biases."""


@contextmanager
def emulated_file(path: Path, dtype: torch.dtype) -> Iterator[Path]:
    """Yield the path of the same graph with emulated mixtures, a temporary file in the same directory."""
    temporary = path.with_name(f".emulated.{path.name}")
    try:
        model = onnx.load(path, load_external_data=False)
        with mxfp4_weights(path, model):
            temporary.write_bytes(emulated(model, DTYPES[dtype]).SerializeToString())
            yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def emulated(model: onnx.ModelProto, dtype: int) -> onnx.ModelProto:
    """Return a graph whose results have a ``dtype`` with its mixtures of 4-bit floats in float32."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    del result.graph.node[:]
    for node in model.graph.node:
        result.graph.node.extend(_in_float32(node, result.graph, dtype) if reads_mxfp4(node) else [node])
    return result


def _in_float32(node: NodeProto, graph: onnx.GraphProto, dtype: int) -> Iterator[NodeProto]:
    wide, name = NodeProto(), node.output[0]
    wide.CopyFrom(node)
    wide.output[0] = f"{name}:wide"
    for index in _FLOATS:
        if node.input[index]:
            wide.input[index] = f"{name}:{index}:wide"
            yield helper.make_node("Cast", [node.input[index]], [wide.input[index]], to=TensorProto.FLOAT)
    yield from exact_mixture(wide, graph)
    yield helper.make_node("Cast", [wide.output[0]], [name], to=dtype)
