"""Experts of 4-bit floats as float32 in a temporary file: what QMoE reads from the data file of an export.

Shapes: experts E, rows N, width K, exponents of a row B. The file has two rows' codes of a column in a byte, E K N/2, the first in the
lower bits; exponents plus 127, E N B; and a factor for every expert. Source: ``QMoEDequantizeFp4WeightsKernel`` in ONNX Runtime's
``contrib_ops/cuda/moe/qmoe_kernels.cu``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from exporters.target.mxfp4_experts import reads_mxfp4
from zoo.weights.float4 import MAGNITUDES

BIAS = 127
"""The offset of exponents in the file, where 255 stands for NaN."""

SIGNED = np.array([*MAGNITUDES, *(-magnitude for magnitude in MAGNITUDES)], np.float32)
FIRST, SECOND = SIGNED[np.arange(256) & 15], SIGNED[np.arange(256) >> 4]
"""The two values of each byte."""

POWERS = np.append(np.ldexp(np.float32(1), np.arange(255) - BIAS), np.float32("nan"))

MATRICES = ((2, 3, 15), (5, 6, 16))
"""The indices of QMoE's inputs of codes, exponents and factors, for both matrices of an expert."""


@contextmanager
def mxfp4_weights(path: Path, model: onnx.ModelProto) -> Iterator[None]:
    """Replace the codes of a graph by matrices, E N K, in a temporary file beside the graph, which is removed at the end.

    One expert is in memory at a time.
    """
    mixtures = [node for node in model.graph.node if reads_mxfp4(node)]
    temporary = path.with_name(f".experts.{path.name}.data")
    try:
        if mixtures:
            tensors, unread = {tensor.name: tensor for tensor in model.graph.initializer}, set[str]()
            with temporary.open("wb") as file:
                for node in mixtures:
                    for inputs in MATRICES:
                        codes, exponents, factors = (tensors[node.input[index]] for index in inputs)
                        _dequantize(codes, exponents, factors, path.parent, file)
                        unread.add(exponents.name)
            kept = [tensor for tensor in model.graph.initializer if tensor.name not in unread]
            del model.graph.initializer[:]
            model.graph.initializer.extend(kept)
        yield
    finally:
        temporary.unlink(missing_ok=True)


def _dequantize(
    codes: TensorProto, exponents: TensorProto, factors: TensorProto, directory: Path, file: Any
) -> None:
    """Append matrices to a file, and make the tensor of their codes one of floats there."""
    (count, width, _), (_, rows, blocks) = codes.dims, exponents.dims
    packed = _stored(codes, directory).reshape(count, width, rows // 2)
    powers = _stored(exponents, directory).reshape(count, rows, blocks)
    start = file.tell()
    matrix = np.empty((rows // 2, 2, width), np.float32)  # of one expert
    for pairs, stored, factor in zip(packed, powers, numpy_helper.to_array(factors), strict=True):
        turned = np.ascontiguousarray(pairs.T)  # N/2 K
        matrix[:, 0], matrix[:, 1] = FIRST[turned], SECOND[turned]
        in_blocks = matrix.reshape(rows, blocks, -1)
        in_blocks *= (POWERS[stored] * factor)[..., None]
        file.write(matrix.data)
    name = codes.name
    codes.Clear()
    codes.name, codes.data_type, codes.data_location = name, TensorProto.FLOAT, TensorProto.EXTERNAL
    codes.dims.extend((count, rows, width))
    extent = {"location": Path(file.name).name, "offset": start, "length": file.tell() - start}
    for key, value in extent.items():
        codes.external_data.add(key=key, value=str(value))


def _stored(tensor: TensorProto, directory: Path) -> NDArray[np.uint8]:
    """The bytes of a tensor, which stay in the data file until they are read."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    data, shape = directory / entries["location"], (int(entries["length"]),)
    return np.memmap(data, np.uint8, "r", int(entries.get("offset", 0)), shape)
