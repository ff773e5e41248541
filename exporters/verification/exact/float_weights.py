"""Experts of 4-bit floats as standard operations of ONNX compute them in float32: what QMoE reads from the data file.

Shapes: experts E, rows N, width K, exponents of a row B. The file has two rows' codes of a column in a byte, E K N/2, the first in the
lower bits; exponents plus 127, E N B; and a factor for every expert. Source: ``QMoEDequantizeFp4WeightsKernel`` in ONNX Runtime's
``contrib_ops/cuda/moe/qmoe_kernels.cu``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from zoo.weights.float4 import MAGNITUDES

BIAS = 127
"""The offset of exponents in the file, where 255 stands for NaN."""


def float_weights(
    made: str, codes: str, exponents: str, factors: str, graph: GraphProto
) -> Iterator[NodeProto]:
    """Yield the nodes that compute matrices, E N K, as the value ``made``; constants are added to the graph."""
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    tensors[exponents].data_type = TensorProto.UINT8  # the same bytes: the CPU provider casts no exponents
    (count, width, _), (_, rows, blocks) = tensors[codes].dims, tensors[exponents].dims
    for label, value in (
        ("low table", _values(np.arange(256) & 15)),
        ("high table", _values(np.arange(256) >> 4)),
        ("power table", np.append(np.ldexp(np.float32(1), np.arange(255) - BIAS), np.float32("nan"))),
        ("last", np.array([-1])),
        ("turned", np.array([count, width, rows])),
        ("split", np.array([count, rows, blocks, -1])),
        ("single", np.array([count, 1, 1, 1])),
        ("whole", np.array([count, rows, width])),
    ):
        graph.initializer.append(numpy_helper.from_array(value, f"{made}:{label}"))
    yield helper.make_node("Cast", [codes], [f"{made}:pairs"], to=TensorProto.INT32)
    for half in ("low", "high"):
        yield helper.make_node("Gather", [f"{made}:{half} table", f"{made}:pairs"], [f"{made}:{half}"])
        yield helper.make_node("Unsqueeze", [f"{made}:{half}", f"{made}:last"], [f"{made}:{half} rows"])
    yield helper.make_node("Concat", [f"{made}:low rows", f"{made}:high rows"], [f"{made}:both"], axis=-1)
    yield helper.make_node("Reshape", [f"{made}:both", f"{made}:turned"], [f"{made}:columns"])
    yield helper.make_node("Transpose", [f"{made}:columns"], [f"{made}:rows"], perm=[0, 2, 1])
    yield helper.make_node("Reshape", [f"{made}:rows", f"{made}:split"], [f"{made}:blocks"])
    yield helper.make_node("Cast", [exponents], [f"{made}:exponents"], to=TensorProto.INT32)
    yield helper.make_node("Gather", [f"{made}:power table", f"{made}:exponents"], [f"{made}:powers"])
    yield helper.make_node("Unsqueeze", [f"{made}:powers", f"{made}:last"], [f"{made}:scale"])
    yield helper.make_node("Mul", [f"{made}:blocks", f"{made}:scale"], [f"{made}:scaled"])
    yield helper.make_node("Reshape", [factors, f"{made}:single"], [f"{made}:factors"])
    yield helper.make_node("Mul", [f"{made}:scaled", f"{made}:factors"], [f"{made}:exact"])
    yield helper.make_node("Reshape", [f"{made}:exact", f"{made}:whole"], [made])


def _values(codes: NDArray[np.int64]) -> NDArray[np.float32]:
    table = np.array([*MAGNITUDES, *(-magnitude for magnitude in MAGNITUDES)], np.float32)
    return table[codes]
