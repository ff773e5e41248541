"""Products whose inputs ONNX Runtime rounds to 8 bits: whether its kernels add more error than that rounding.

Each product of a graph is run alone on inputs made for it, as written and in its exact form. The exact form on inputs
that are rounded beforehand gives the expected error.
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
"""How much larger one column of the inputs is than the others."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Product:
    """A product in a graph: the names of its input and result, its width, and whether one scale rounds all rows of
    the input; for a ``static`` one, the scale and the zero point."""

    name: str
    x: str
    y: str
    width: int
    whole: bool
    static: tuple[float, int] | None = None

    def inputs(self, rows: int) -> Array:
        """Random inputs for it: rows x width."""
        return _inputs(rows, self.width) if self.static is None else _within(rows, self.width, *self.static)

    def rounded(self, x: Array) -> Array:
        """Inputs rounded to 8 bits."""
        return _rounded(x, whole=self.whole) if self.static is None else _stepped(x, *self.static)


def worst_product(path: Path, target: Target) -> RoundedProduct | None:
    """The product of a file with the largest error of its own; None where no inputs are rounded."""
    from exporters.verification.runtime_outputs import session

    found = list(products(onnx.load(path, load_external_data=False), path.parent))
    if not found:
        return None
    errors = dict.fromkeys((product.name for product in found), 0.0)
    with _alone(path, found) as place, exact_file(place) as exact_place:
        real, exact = session(place, target), session(exact_place, target, exact=True)
        for rows in ROWS:
            inputs = {product.x: product.inputs(rows) for product in found}
            rounded = {product.x: product.rounded(inputs[product.x]) for product in found}
            got, ideal, expected = (
                _run(*each) for each in ((real, inputs), (exact, inputs), (exact, rounded))
            )
            for product in found:
                y = product.y
                error = _rms(got[y] - ideal[y]) / (_rms(expected[y] - ideal[y]) or 1.0)
                errors[product.name] = max(error, errors[product.name])
    return max((RoundedProduct(*each) for each in errors.items()), key=lambda product: product.error)


def products(model: onnx.ModelProto, directory: Path) -> Iterator[Product]:
    """Yield the float32 products whose inputs a runtime may round; the data file is in ``directory``."""
    values = {weight.name: weight for weight in model.graph.initializer}
    sizes = {weight.name: (weight.data_type, list(weight.dims)) for weight in model.graph.initializer}
    made = {output: node for node in model.graph.node for output in node.output if output}
    readers: dict[str, list[NodeProto]] = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    for node in model.graph.node:
        options = {attribute.name: attribute.i for attribute in node.attribute}
        if node.op_type == "MatMulNBits" and options.get("accuracy_level") == 4:
            scales = sizes.get(node.input[2])  # None where they are widened on loading
            if scales is None or scales[0] == FLOAT:
                yield Product(node.name, node.input[0], node.output[0], options["K"], whole=False)
        elif node.op_type == "MatMulInteger":
            codes, weight = node.input[:2]
            transposed = weight not in sizes
            dims = sizes[made[weight].input[0] if transposed else weight][1]
            (cast,) = readers[node.output[0]]
            (scaled,) = readers[cast.output[0]]
            width = dims[-1] if transposed else dims[0]
            yield Product(node.name, made[codes].input[0], scaled.output[0], width, whole=True)
        elif node.op_type == "MatMul" and node.input[1] in made:
            whole = made[node.input[1]]
            given = made.get(node.input[0])
            if given is not None and given.op_type == "DequantizeLinear":
                scale, zero = (_scalar(values[name], directory) for name in given.input[1:])
                width = sizes[whole.input[0]][1][0]
                x = made[given.input[0]].input[0]
                yield Product(node.name, x, node.output[0], width, True, (scale, int(zero)))
            elif whole.op_type == "DequantizeLinear" and sizes[whole.input[1]][0] == FLOAT:
                width = sizes[whole.input[0]][1][0]
                yield Product(node.name, node.input[0], node.output[0], width, whole=False)


@contextmanager
def _alone(path: Path, found: Sequence[Product]) -> Iterator[Path]:
    """Yield a temporary file next to a graph's, with only some of its products."""
    model = onnx.load(path, load_external_data=False)
    made = {output: node for node in model.graph.node for output in node.output if output}
    inputs, wanted = {product.x for product in found}, [product.y for product in found]
    kept: list[str] = []
    while wanted:
        name = wanted.pop()
        if name in made and name not in inputs and made[name].name not in kept:
            kept.append(made[name].name)
            wanted.extend(made[name].input)
    nodes = [node for node in model.graph.node if node.name in kept]
    read = {name for node in nodes for name in node.input}
    widths = {product.x: product.width for product in found}
    graph = helper.make_graph(
        nodes,
        "products",
        [helper.make_tensor_value_info(name, FLOAT, ["rows", width]) for name, width in widths.items()],
        [helper.make_tensor_value_info(product.y, FLOAT, None) for product in found],
        [weight for weight in model.graph.initializer if weight.name in read],
    )
    place = path.with_name(f".products.{path.name}")
    opsets, version = list(model.opset_import), model.ir_version
    try:
        message = helper.make_model(graph, opset_imports=opsets, ir_version=version)
        place.write_bytes(message.SerializeToString())
        yield place
    finally:
        place.unlink(missing_ok=True)


def _scalar(tensor: onnx.TensorProto, directory: Path) -> float:
    return float(numpy_helper.to_array(tensor, str(directory)))


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
    """x rounded to 8 bits, with one scale for the whole of it, or one per row."""
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
