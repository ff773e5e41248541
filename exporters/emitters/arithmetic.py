"""Functions that work element by element, reductions, and matrix products."""

from __future__ import annotations

import operator
from typing import Any

import onnx_ir as ir
import torch
import torch.nn.functional as F

from exporters.emitters.registry import Call, Operand, emits


def _of_sizes(*operands: Any) -> bool:
    return not any(isinstance(operand, Operand) and operand.is_tensor for operand in operands)


_NEUTRAL = {"Add": 0, "Sub": 0, "Mul": 1, "Div": 1, "Pow": 1}


def _binary(name: str, *targets: Any) -> None:
    @emits(*targets)
    def emit(call: Call, a: Any, b: Any) -> ir.Value:
        if _of_sizes(a, b):
            return call.graph.size(call.node.meta["facts"]) if _named(call) else call.op(name, call.size(a), call.size(b))
        dtype = call.result.dtype
        if not isinstance(b, Operand) and b == _NEUTRAL.get(name):
            return call.value(a, dtype)
        return call.op(name, call.value(a, dtype), call.value(b, dtype))


def _named(call: Call) -> bool:
    return call.graph.symbols.name(call.node.meta["facts"]) is not None


_binary("Add", operator.add, torch.add, "add")
_binary("Sub", operator.sub, torch.sub, "sub")
_binary("Mul", operator.mul, torch.mul, "mul")
_binary("Div", operator.truediv, operator.floordiv, torch.div, "div")
_binary("Pow", operator.pow, torch.pow, "pow")
_binary("Max", torch.maximum)
_binary("Min", torch.minimum)
_binary("And", operator.and_)
_binary("Or", operator.or_)


def _comparison(name: str, target: Any, *, negated: bool = False) -> None:
    @emits(target)
    def emit(call: Call, a: Operand, b: Any) -> ir.Value:
        dtype = torch.promote_types(a.dtype, b.dtype) if isinstance(b, Operand) else a.dtype
        result = call.op(name, call.value(a, dtype), call.value(b, dtype))
        return call.op("Not", result) if negated else result


_comparison("LessOrEqual", operator.le)
_comparison("Less", operator.lt)
_comparison("GreaterOrEqual", operator.ge)
_comparison("Greater", operator.gt)
_comparison("Equal", operator.eq)
_comparison("Equal", operator.ne, negated=True)


def _unary(name: str, *targets: Any) -> None:
    @emits(*targets)
    def emit(call: Call, x: Operand) -> ir.Value:
        return call.op(name, x.value)


_unary("Abs", torch.abs, "abs")
_unary("Neg", torch.neg, operator.neg, "neg")
_unary("Sin", torch.sin, "sin")
_unary("Cos", torch.cos, "cos")
_unary("Tanh", torch.tanh, "tanh")
_unary("Sigmoid", torch.sigmoid, "sigmoid")
_unary("Exp", torch.exp, "exp")
_unary("Sqrt", torch.sqrt, "sqrt")


@emits(torch.rsqrt, "rsqrt")
def _rsqrt(call: Call, x: Operand) -> ir.Value:
    return call.op("Reciprocal", call.op("Sqrt", x.value))


@emits(F.relu, "relu")
def _relu(call: Call, x: Operand, inplace: bool = False) -> ir.Value:
    return call.op("Relu", x.value)


@emits(F.silu)
def _silu(call: Call, x: Operand, inplace: bool = False) -> ir.Value:
    return call.op("Mul", x.value, call.op("Sigmoid", x.value))


@emits(F.gelu)
def _gelu(call: Call, x: Operand, approximate: str = "none") -> ir.Value:
    if call.graph.target.takes("Gelu", x.dtype):
        return call.op("Gelu", x.value, **({"approximate": approximate} if approximate != "none" else {}))
    raise NotImplementedError(f"target {call.graph.target.name} has no Gelu")


@emits(torch.clamp, "clamp")
def _clamp(call: Call, x: Operand, min: Any = None, max: Any = None) -> ir.Value:
    low, high = (None if bound is None else call.value(bound, x.dtype) for bound in (min, max))
    return call.op("Clip", x.value, low, *([] if high is None else [high]))


@emits(torch.cumsum, "cumsum")
def _cumsum(call: Call, x: Operand, dim: int) -> ir.Value:
    axis = call.graph.constant(dim % x.ndim, torch.int64)
    return call.op("CumSum", call.cast(x.value, x.dtype, call.result.dtype), axis)


@emits(torch.where)
def _where(call: Call, condition: Operand, a: Any, b: Any) -> ir.Value:
    dtype = call.result.dtype
    return call.op("Where", condition.value, call.value(a, dtype), call.value(b, dtype))


@emits("to", "type")
def _to(call: Call, x: Operand, dtype: torch.dtype) -> ir.Value:
    return call.cast(x.value, x.dtype, dtype)


@emits("float")
def _float(call: Call, x: Operand) -> ir.Value:
    return call.cast(x.value, x.dtype, torch.float32)


def _reduction(name: str, *targets: Any) -> None:
    @emits(*targets)
    def emit(call: Call, x: Operand, dim: Any, keepdim: bool = False) -> ir.Value:
        axes = [axis % x.ndim for axis in ((dim,) if isinstance(dim, int) else dim)]
        return call.op(name, x.value, call.graph.ints(*axes), keepdims=int(keepdim))


_reduction("ReduceMean", torch.mean, "mean")
_reduction("ReduceSum", torch.sum, "sum")


@emits(F.softmax, "softmax")
def _softmax(call: Call, x: Operand, dim: int, **options: Any) -> ir.Value:
    return call.op("Softmax", x.value, axis=dim)


@emits(operator.matmul, torch.matmul, "matmul")
def _matmul(call: Call, a: Operand, b: Operand) -> ir.Value:
    return call.op("MatMul", a.value, b.value)
