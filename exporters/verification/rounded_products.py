"""A check of products whose inputs ONNX Runtime rounds to 8 bits: its kernels must add no error beyond that rounding.

Each product of a graph runs alone on inputs made for it, as written and in its exact form. The exact form on inputs rounded
beforehand gives the expected error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, helper, numpy_helper

from exporters.target.targets import Target
from exporters.verification.exact.bfloat16 import FLOAT
from exporters.verification.exact.graph import exact_file
from exporters.verification.result import RoundedProduct

ROWS = (1, 5)
"""A vector and a matrix: kernels differ."""

OUTLIER = 8.0
"""The factor of one column of the inputs over the others."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Product:
    """A product in a graph: the names of its input and result, and its width.

    ``whole``: one scale rounds all rows of the input. ``static``: the scale and the zero point of static rounding.
    """

    name: str
    x: str
    y: str
    width: int
    whole: bool
    static: tuple[float, int] | None = None

    def inputs(self, rows: int) -> Array:
        """Random inputs: rows x width."""
        return _inputs(rows, self.width) if self.static is None else _within(rows, self.width, *self.static)

    def rounded(self, x: Array) -> Array:
        """Inputs rounded to 8 bits."""
        return _rounded(x, whole=self.whole) if self.static is None else _stepped(x, *self.static)


def worst_product(path: Path, target: Target) -> RoundedProduct | None:
    """The product of a file with the largest error beyond rounding; None if no inputs are rounded."""
    from exporters.verification.runtime_outputs import session

    every = list(products(onnx.load(path, load_external_data=False), path.parent))
    if not every:
        return None
    errors = dict.fromkeys((product.name for product in every), 0.0)
    with _alone(path, every) as alone, exact_file(alone) as exact_alone:
        real, exact = session(alone, target), session(exact_alone, target, exact=True)
        for rows in ROWS:
            inputs = {product.x: product.inputs(rows) for product in every}
            rounded = {product.x: product.rounded(inputs[product.x]) for product in every}
            got, ideal, expected = (
                _run(*call) for call in ((real, inputs), (exact, inputs), (exact, rounded))
            )
            for product in every:
                y = product.y
                error = _rms(got[y] - ideal[y]) / (_rms(expected[y] - ideal[y]) or 1.0)
                errors[product.name] = max(error, errors[product.name])
    return max((RoundedProduct(*item) for item in errors.items()), key=lambda product: product.error)


def products(model: onnx.ModelProto, directory: Path) -> Iterator[Product]:
    """Yield the float32 products whose inputs a runtime may round; the data file is in ``directory``."""
    graph = _Lookup.of(model, directory)
    readers = {
        "MatMulNBits": graph.product_in_blocks,
        "MatMulInteger": graph.integer_product,
        "MatMul": graph.dequantized_product,
    }
    for node in model.graph.node:
        product = readers[node.op_type](node) if node.op_type in readers else None
        if product is not None:
            yield product


@dataclass(frozen=True)
class _Lookup:
    """The weights and operations of a graph by the names of their values."""

    directory: Path
    weights: dict[str, onnx.TensorProto]
    writers: dict[str, NodeProto]
    readers: dict[str, list[NodeProto]]

    @classmethod
    def of(cls, model: onnx.ModelProto, directory: Path) -> _Lookup:
        writers = {output: node for node in model.graph.node for output in node.output if output}
        readers: dict[str, list[NodeProto]] = {}
        for node in model.graph.node:
            for name in node.input:
                readers.setdefault(name, []).append(node)
        return cls(directory, {weight.name: weight for weight in model.graph.initializer}, writers, readers)

    def product_in_blocks(self, node: NodeProto) -> Product | None:
        """The product of a MatMulNBits that rounds its inputs and has float32 scales."""
        options = {attribute.name: attribute.i for attribute in node.attribute}
        scales = self.weights.get(node.input[2])  # None if they are widened on loading
        if options.get("accuracy_level") != 4 or (scales is not None and scales.data_type != FLOAT):
            return None
        return Product(node.name, node.input[0], node.output[0], options["K"], whole=False)

    def integer_product(self, node: NodeProto) -> Product:
        """The product around a MatMulInteger, from before its DynamicQuantizeLinear to the scaled result."""
        codes, weight = node.input[:2]
        (cast,) = self.readers[node.output[0]]
        (scaled,) = self.readers[cast.output[0]]
        if weight in self.weights:
            width = self.weights[weight].dims[0]
        else:
            width = self.weights[self.writers[weight].input[0]].dims[-1]  # transposed
        return Product(node.name, self.writers[codes].input[0], scaled.output[0], width, whole=True)

    def dequantized_product(self, node: NodeProto) -> Product | None:
        """The product of a MatMul with a dequantized weight, which a runtime fuses; None for any other."""
        weight = self.writers.get(node.input[1])
        if weight is None:
            return None
        inputs = self.writers.get(node.input[0])
        if inputs is not None and inputs.op_type == "DequantizeLinear":
            scale, zero = map(self._scalar, inputs.input[1:])
            x = self.writers[inputs.input[0]].input[0]
            return Product(node.name, x, node.output[0], self._width(weight), True, (scale, int(zero)))
        if weight.op_type != "DequantizeLinear" or self.weights[weight.input[1]].data_type != FLOAT:
            return None
        return Product(node.name, node.input[0], node.output[0], self._width(weight), whole=False)

    def _width(self, dequantize: NodeProto) -> int:
        return self.weights[dequantize.input[0]].dims[0]

    def _scalar(self, name: str) -> float:
        return float(numpy_helper.to_array(self.weights[name], str(self.directory)))


@contextmanager
def _alone(path: Path, wanted: Sequence[Product]) -> Iterator[Path]:
    """Yield a temporary file next to a graph, with only the ``wanted`` products."""
    model = onnx.load(path, load_external_data=False)
    made = {output: node for node in model.graph.node for output in node.output if output}
    inputs, needed = {product.x for product in wanted}, [product.y for product in wanted]
    kept: list[str] = []
    while needed:
        name = needed.pop()
        if name in made and name not in inputs and made[name].name not in kept:
            kept.append(made[name].name)
            needed.extend(made[name].input)
    nodes = [node for node in model.graph.node if node.name in kept]
    read = {name for node in nodes for name in node.input}
    widths = {product.x: product.width for product in wanted}
    graph = helper.make_graph(
        nodes,
        "products",
        [helper.make_tensor_value_info(name, FLOAT, ["rows", width]) for name, width in widths.items()],
        [helper.make_tensor_value_info(product.y, FLOAT, None) for product in wanted],
        [weight for weight in model.graph.initializer if weight.name in read],
    )
    temporary = path.with_name(f".products.{path.name}")
    opsets, version = list(model.opset_import), model.ir_version
    try:
        message = helper.make_model(graph, opset_imports=opsets, ir_version=version)
        temporary.write_bytes(message.SerializeToString())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _within(rows: int, width: int, scale: float, zero: int) -> Array:
    """Inputs over the whole range of static scales."""
    codes = np.random.default_rng(width + rows).uniform(0, 255, (rows, width))
    return ((codes - zero) * scale).astype(np.float32)


def _stepped(x: Array, scale: float, zero: int) -> Array:
    codes = np.clip(np.round(x / scale) + zero, 0, 255)
    return ((codes - zero) * scale).astype(np.float32)


def _inputs(rows: int, width: int) -> Array:
    x = np.random.default_rng(width + rows).standard_normal((rows, width), dtype=np.float32)
    x[:, width // 3] *= OUTLIER
    return x


def _rounded(x: Array, *, whole: bool) -> Array:
    """x rounded to 8 bits, with one scale for the tensor or one per row."""
    if whole:  # DynamicQuantizeLinear
        low, high = min(float(x.min()), 0.0), max(float(x.max()), 0.0)
        scale = (high - low) / 255
        zero = np.round(-low / scale)
        return ((np.clip(np.round(x / scale) + zero, 0, 255) - zero) * scale).astype(np.float32)
    scales = np.abs(x).max(axis=1, keepdims=True) / 127
    return (np.round(x / scales) * scales).astype(np.float32)


def _run(session: Any, inputs: dict[str, Array]) -> dict[str, Array]:
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def _rms(x: Array) -> float:
    return float(np.sqrt(np.mean(np.square(x, dtype=np.float64))))
