"""Emitters of elementwise functions, reductions and matrix products."""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.nn.functional as F

from exporters.graph.dtypes import DTYPES
from exporters.graph.emitters.registry import Call, Operand, emits
from exporters.graph.values import STATED_ROUNDING, Value
from zoo import functional
from zoo.ops.reductions import reduced_axes


def _of_sizes(*operands: Any) -> bool:
    return not any(isinstance(operand, Operand) and operand.is_tensor for operand in operands)


_NEUTRAL = {"Add": 0, "Sub": 0, "Mul": 1, "Div": 1, "Pow": 1}


def _binary(name: str, *targets: Any) -> None:
    @emits(*targets)
    def emit(call: Call, a: Any, b: Any) -> Value:
        if _of_sizes(a, b):
            return _named(call) or call.op(name, call.size(a), call.size(b))
        dtype = call.result.dtype
        if not isinstance(b, Operand) and b == _NEUTRAL.get(name):
            return call.value(a, dtype)
        if name == "Div" and not isinstance(a, Operand) and a == 1 and dtype.is_floating_point:
            # ONNX Runtime turns y * Div(1, x) into y / x, which rounds differently.
            return call.op("Reciprocal", call.value(b, dtype))
        return call.op(name, call.value(a, dtype), call.value(b, dtype))


def _named(call: Call) -> Value | None:
    """Return the result as a named size if an input has that size; otherwise None."""
    sizes = call.node.meta["info"]
    return call.graph.size(sizes) if call.graph.knows(sizes) else None


_binary("Add", operator.add, torch.add, "add")
_binary("Sub", operator.sub, torch.sub, "sub")
_binary("Mul", operator.mul, torch.mul, "mul")
_binary("Div", operator.truediv, torch.div, "div")
_binary("Pow", operator.pow, torch.pow, "pow")
_binary("Max", torch.maximum)
_binary("Min", torch.minimum)


@emits(operator.floordiv)
def _floor_divide(call: Call, a: Any, b: Any) -> Value:
    if _of_sizes(a, b):
        return _named(call) or _rounded_down(call, call.size(a), call.size(b))
    dtype = call.result.dtype
    if dtype.is_floating_point:
        raise NotImplementedError(
            "Floor division of floats gives different results in different runtimes: divide integers"
        )
    return _rounded_down(call, call.value(a, dtype), call.value(b, dtype))


def _rounded_down(call: Call, a: Value, b: Value) -> Value:
    """Return (a - a mod b) / b, which rounds down: integer Div rounds towards zero, but Mod has the sign of the divisor."""
    return call.op("Div", call.op("Sub", a, call.op("Mod", a, b)), b)


def _logic(name: str, target: Any) -> None:
    @emits(target)
    def emit(call: Call, a: Any, b: Any) -> Value:
        dtype = call.result.dtype
        return call.op(
            name if dtype == torch.bool else f"Bitwise{name}", call.value(a, dtype), call.value(b, dtype)
        )


_logic("And", operator.and_)
_logic("Or", operator.or_)


def _comparison(name: str, target: Any, *, negated: bool = False) -> None:
    @emits(target)
    def emit(call: Call, a: Any, b: Any) -> Value:
        dtype = call.promoted(a, b)
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
    def emit(call: Call, x: Operand) -> Value:
        return call.op(name, call.value(x, call.result.dtype))


_unary("Abs", torch.abs, "abs")
_unary("Neg", torch.neg, "neg")
_unary("Tanh", torch.tanh, "tanh")
_unary("Sigmoid", torch.sigmoid, "sigmoid")
_unary("Exp", torch.exp, "exp")
_unary("Log", torch.log, "log")
_unary("Sqrt", torch.sqrt, "sqrt")


@emits(operator.neg)
def _minus(call: Call, x: Operand) -> Value:
    return call.op("Neg", x.value)


@emits(torch.rsqrt, "rsqrt")
def _rsqrt(call: Call, x: Operand) -> Value:
    return call.op("Reciprocal", call.op("Sqrt", call.value(x, call.result.dtype)))


@emits(F.relu, "relu")
def _relu(call: Call, x: Operand, inplace: bool = False) -> Value:
    return call.op("Relu", x.value)


@emits(F.silu)
def _silu(call: Call, x: Operand, inplace: bool = False) -> Value:
    return call.op("Mul", x.value, call.op("Sigmoid", x.value))


@emits(F.elu)
def _elu(call: Call, x: Operand, alpha: float = 1.0, inplace: bool = False) -> Value:
    return call.op("Elu", x.value, **({"alpha": alpha} if alpha != 1.0 else {}))


@emits(F.softplus)
def _softplus(call: Call, x: Operand, beta: float = 1, threshold: float = 20) -> Value:
    if beta != 1 or threshold < 20:
        raise NotImplementedError("Softplus must have beta 1 and a threshold of 20 or more")
    return call.op("Softplus", x.value)


@emits(F.gelu)
def _gelu(call: Call, x: Operand, approximate: str = "none") -> Value:
    if call.graph.target.takes("Gelu", x.dtype):
        return call.op("Gelu", x.value, **({"approximate": approximate} if approximate != "none" else {}))
    raise NotImplementedError(f"Target {call.graph.target.name} has no Gelu: choose another target")


@emits(torch.clamp, "clamp")
def _clamp(call: Call, x: Operand, min: Any = None, max: Any = None) -> Value:
    if any(isinstance(bound, Operand) and bound.is_tensor for bound in (min, max)):
        raise NotImplementedError("Bounds must be numbers: for tensors use torch.maximum and torch.minimum")
    dtype = call.result.dtype
    low, high = (None if bound is None else call.value(bound, dtype) for bound in (min, max))
    return call.op("Clip", call.value(x, dtype), low, *([] if high is None else [high]))


@emits(torch.cumsum, "cumsum")
def _cumsum(call: Call, x: Operand, dim: int) -> Value:
    axis = call.graph.constant(dim % x.ndim, torch.int64)
    return call.op("CumSum", call.value(x, call.result.dtype), axis)


@emits(torch.topk, "topk")
def _topk(
    call: Call, x: Operand, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Value, ...]:
    options = {"axis": dim, "largest": int(largest), "sorted": int(sorted)}
    results: tuple[Value, ...] = call.op("TopK", x.value, call.size(k), outputs=2, **options)
    return results


@emits(torch.gather, "gather")
def _gather(call: Call, x: Operand, dim: int, index: Operand) -> Value:
    return call.op("GatherElements", x.value, index.value, axis=dim % x.ndim)


@emits(torch.where)
def _where(call: Call, condition: Operand, a: Any, b: Any) -> Value:
    dtype = call.result.dtype
    return call.op("Where", condition.value, call.value(a, dtype), call.value(b, dtype))


@emits(functional.rounded_to_bfloat16)
def _rounded_to_bfloat16(call: Call, x: Operand) -> Value:
    wide = call.cast(x.value, x.dtype, torch.float32)
    rounded = call.op("Cast", wide, label=STATED_ROUNDING, to=DTYPES[torch.bfloat16])
    return call.op("Cast", rounded, to=DTYPES[torch.float32])


@emits("to", "type")
def _to(call: Call, x: Operand, *wanted: Any, **named: Any) -> Value:
    return call.value(x, call.result.dtype)


@emits("float")
def _float(call: Call, x: Operand) -> Value:
    return call.value(x, torch.float32)


def _reduction(name: str, *targets: Any) -> None:
    @emits(*targets)
    def emit(call: Call, x: Operand, dim: Any = None, keepdim: bool = False) -> Value:
        axes = call.graph.ints(*reduced_axes(x.ndim, dim))
        return call.op(name, call.value(x, call.result.dtype), axes, keepdims=int(keepdim))


_reduction("ReduceMean", torch.mean, "mean")
_reduction("ReduceSum", torch.sum, "sum")
_reduction("ReduceMax", torch.amax, "amax")


@emits(F.softmax, "softmax")
def _softmax(call: Call, x: Operand, dim: int, _stacklevel: int = 3, dtype: Any = None) -> Value:
    return call.op("Softmax", call.value(x, call.result.dtype), axis=dim)


@emits(operator.matmul, torch.matmul, "matmul")
def _matmul(call: Call, a: Operand, b: Operand) -> Value:
    return call.op("MatMul", a.value, b.value)
