"""The values that the quantized matrices of a graph stand for, computed from its file alone.

Operations mean what ONNX and ONNX Runtime document; sums are made in float64 and rounded once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import NodeProto, numpy_helper

Values = NDArray[Any]


class _File:
    def __init__(self, path: Path) -> None:
        model = onnx.load(path)
        self.nodes = list(model.graph.node)
        self.weights = {weight.name: weight for weight in model.graph.initializer}
        self.made = {output: node for node in self.nodes for output in node.output}

    def array(self, name: str) -> Values:
        """A weight in float64, or what a few operations make of weights when a file is loaded."""
        if name in self.weights:
            return numpy_helper.to_array(self.weights[name])
        node = self.made[name]
        inputs = [self.array(each) for each in node.input]
        options = _options(node)
        match node.op_type:
            case "Cast":
                return inputs[0].astype(np.float64)
            case "Mul":
                return inputs[0] * inputs[1].astype(np.float64)
            case "Add":
                return inputs[0] + inputs[1].astype(np.float64)
            case "Transpose":
                return inputs[0].T
            case "DequantizeLinear":
                axis, size = options["axis"], options.get("block_size")
                spread = [np.repeat(each, size, axis) if size else each for each in inputs[1:]]
                scale, zero = spread[0].astype(np.float64), spread[1] if len(spread) > 1 else 0
                if size is None:
                    scale = np.expand_dims(scale, 1 - axis)
                return (inputs[0].astype(np.float64) - zero) * scale
        raise NotImplementedError(node.op_type)


def _options(node: NodeProto) -> dict[str, Any]:
    return {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}


def carried_values(path: Path) -> Iterator[tuple[str, Values]]:
    """The matrices that products read, N K in float32, by the name of their codes."""
    file = _File(path)
    for node in file.nodes:
        if node.op_type == "MatMulNBits":
            matrix, codes = _bits(file, node), node.input[1]
        elif node.op_type == "MatMul" and (whole := _dequantized(file, node.input[1])):
            matrix, codes = file.array(node.input[1]).T, whole
        else:
            continue
        for add in file.nodes:  # the sums of blocks times what blocks add
            if add.op_type == "Add" and node.output[0] in add.input:
                others = [file.made.get(each) for each in add.input if each != node.output[0]]
                if others[0] is not None and others[0].op_type == "MatMul":
                    added = file.array(others[0].input[1]).T
                    matrix = matrix + np.repeat(added, matrix.shape[1] // added.shape[1], 1)
        yield codes, matrix.astype(np.float32)


def _bits(file: _File, node: NodeProto) -> Values:
    options = _options(node)
    rows, width, bits, size = (options[name] for name in ("N", "K", "bits", "block_size"))
    packed = file.array(node.input[1])
    codes = np.stack((packed & 15, packed >> 4), -1) if bits == 4 else packed
    codes = codes.reshape(rows, -1, size).astype(np.float64)
    zeros: Any = 2 ** (bits - 1)
    if len(node.input) > 3 and node.input[3]:
        held = file.array(node.input[3])
        zeros = np.stack((held & 15, held >> 4), -1).reshape(rows, -1) if bits == 4 else held
        zeros = zeros.reshape(rows, -1)[:, : codes.shape[1], None].astype(np.float64)
    scales = file.array(node.input[2]).reshape(rows, -1, 1).astype(np.float64)
    return ((codes - zeros) * scales).reshape(rows, -1)[:, :width]


def _dequantized(file: _File, name: str) -> str | None:
    """The codes behind a matrix, or None where it is no quantized one."""
    node = file.made.get(name)
    if node is not None and node.op_type == "Transpose":
        node = file.made.get(node.input[0])
    return node.input[0] if node is not None and node.op_type == "DequantizeLinear" else None
