"""The bytes of weights that a graph reads per call."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path

import onnx
from onnx import TensorProto

_BITS = {
    TensorProto.FLOAT: 32,
    TensorProto.FLOAT16: 16,
    TensorProto.BFLOAT16: 16,
    TensorProto.INT64: 64,
    TensorProto.INT32: 32,
    TensorProto.INT8: 8,
    TensorProto.UINT8: 8,
    TensorProto.INT4: 4,
    TensorProto.UINT4: 4,
}

_PICKING = {"Gather", "GatherBlockQuantized"}
"""The operations that read a few rows of a table."""


def weights_read(path: Path) -> int:
    """The bytes of weights that every call of a graph reads, except tables from which it gathers rows."""
    graph = onnx.load(path, load_external_data=False).graph
    readers = defaultdict(set)
    for node in graph.node:
        for name in node.input:
            readers[name].add(node.op_type)
    return sum(
        math.prod(tensor.dims) * _BITS.get(tensor.data_type, 32) // 8
        for tensor in graph.initializer
        if readers[tensor.name] - _PICKING
    )
