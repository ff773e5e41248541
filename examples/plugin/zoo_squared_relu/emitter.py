"""ONNX for torch.square; imported at the first export."""

import torch

from exporters.graph.emitters import Call, Operand, emits
from exporters.graph.values import Value


@emits(torch.square, "square")
def _square(call: Call, x: Operand) -> Value:
    result: Value = call.op("Mul", x.value, x.value)
    return result
