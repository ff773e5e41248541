"""ONNX for the operations of this project that PyTorch's exporter cannot translate.

Importing this module needs onnxscript, which reads its annotations as types, not as text.

Shapes: rows R, width D, experts E, chosen experts K, rows of a matrix N.
"""

from collections.abc import Callable
from typing import Any

from onnxscript import FLOAT, INT64, opset18, script

from zoo.functional.expert_products import expert_product

op: Any = opset18


@script()
def _each_expert(rows: FLOAT, weight: FLOAT, chosen: INT64) -> FLOAT:
    """Each row times the matrix of its expert: R D, E N D, R -> R N."""
    zero = op.CastLike(op.Constant(value_float=0.0), rows)
    result = op.Expand(zero, op.Concat(op.Shape(chosen), op.Shape(weight, start=1, end=2), axis=0))
    for expert in range(op.Squeeze(op.Shape(weight, start=0, end=1))):
        places = op.Transpose(op.NonZero(op.Equal(chosen, expert)), perm=[1, 0])  # rows of one expert, 1
        matrix = op.Transpose(op.Gather(weight, expert, axis=0), perm=[1, 0])
        result = op.ScatterND(result, places, op.MatMul(op.GatherND(rows, places), matrix))
    return result


def _expert_product(x: Any, weight: Any, bias: Any, experts: Any) -> Any:
    """... K D or ... 1 D, E N D, E N, ... K -> ... K N, in a loop over the experts."""
    width = op.Shape(weight, start=2)
    rows_of_experts = op.Expand(x, op.Concat(op.Shape(experts), width, axis=0))  # ... K D
    rows = op.Reshape(rows_of_experts, op.Concat(op.Constant(value_ints=[-1]), width, axis=0))
    chosen = op.Reshape(experts, op.Constant(value_ints=[-1]))
    products = _each_expert(rows, weight, chosen)
    shape = op.Concat(op.Shape(experts), op.Shape(weight, start=1, end=2), axis=0)
    result = op.Reshape(products, shape, allowzero=1)
    return result if bias is None else op.Add(result, op.Gather(bias, experts, axis=0))


TRANSLATIONS: dict[Callable[..., Any], Callable[..., Any]] = {expert_product.default: _expert_product}
"""Functions of onnxscript by operation, as ``torch.onnx.export`` takes them."""
