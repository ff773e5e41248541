"""Operations of one tensor, element by element: activations, functions, conversions, dropout."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx

from zoo import functional
from zoo.ops.flops import no_flops, per_element
from zoo.ops.operation import always, register_operation
from zoo.ops.saved import GradientCall, SavedTensor, saves_nothing, saves_result, saves_tensors
from zoo.ops.tensor_info import TensorInfo, broadcast, floating, promoted, shapes_of
from zoo.ops.tokens import separate


def same(x: TensorInfo, *args: Any, **kwargs: Any) -> TensorInfo:
    """The shape and dtype of the first argument."""
    return x


def _float_function(x: TensorInfo) -> TensorInfo:
    return TensorInfo(x.shape, floating(x.dtype))


def _clamp(x: TensorInfo, min: Any = None, max: Any = None) -> TensorInfo:
    bounds = [bound for bound in (min, max) if bound is not None]
    shape = broadcast(x.shape, *shapes_of(*bounds))
    return functools.reduce(lambda wide, bound: TensorInfo(shape, promoted(wide, bound)), bounds, x)


def _to(
    x: TensorInfo,
    wanted: torch.dtype | torch.device | TensorInfo | None = None,
    *,
    dtype: torch.dtype | None = None,
) -> TensorInfo:
    if isinstance(wanted, torch.device):
        return x
    return TensorInfo(
        x.shape, dtype or (wanted.dtype if isinstance(wanted, TensorInfo) else wanted) or x.dtype
    )


def _to_float32(x: TensorInfo) -> TensorInfo:
    return TensorInfo(x.shape, torch.float32)


def keeps_dtype(node: fx.Node) -> bool:
    """Whether a call that casts returns its first argument as it is."""
    (source, *_), dtype = node.all_input_nodes, node.meta["info"][0].dtype
    return bool(source.meta["info"][0].dtype == dtype)


def drops(node: fx.Node) -> bool:
    """Whether a call of F.dropout(x, p, training, inplace) drops values."""
    arguments = dict(zip(("input", "p", "training"), node.args, strict=False)) | node.kwargs
    return bool(arguments.get("p", 0.5)) and bool(arguments.get("training", True))


def _dropout_mask(call: GradientCall) -> Iterator[SavedTensor]:
    """One byte per element."""
    if drops(call.node):
        yield call.make(lambda infos: infos[call.node].elements)


CASTS = ("to", "type", "float")
"""The methods that return a tensor in another dtype, or as it is if it has that dtype."""

ONE = {"flops": per_element(), "mixing": separate, "keeps_order": True}
NONE = {"flops": no_flops, "mixing": separate}

register_operation(torch.neg, "neg", shape=same, saved=saves_nothing, **ONE)
register_operation(torch.abs, "abs", F.gelu, F.silu, F.elu, shape=same, saved=saves_tensors, **ONE)
register_operation(F.relu, "relu", shape=same, saved=saves_result, **ONE)
register_operation(
    torch.sin, "sin", torch.cos, "cos", torch.log, "log", shape=_float_function, saved=saves_tensors, **ONE
)
register_operation(
    torch.tanh, "tanh", torch.sigmoid, "sigmoid", torch.exp, "exp", torch.rsqrt, "rsqrt", torch.sqrt, "sqrt",
    shape=_float_function, saved=saves_result, **ONE,
)  # fmt: skip
register_operation(
    F.softplus, shape=same, saved=saves_tensors, flops=per_element(3), mixing=separate, keeps_order=True
)
register_operation(torch.clamp, "clamp", shape=_clamp, saved=saves_tensors, **ONE)

register_operation("to", "type", shape=_to, saved=saves_nothing, shares_memory=keeps_dtype, **NONE)
register_operation("float", shape=_to_float32, saved=saves_nothing, shares_memory=keeps_dtype, **NONE)
register_operation(functional.rounded_to_bfloat16, shape=_to_float32, saved=saves_nothing, **NONE)
register_operation("contiguous", "detach", shape=same, saved=saves_nothing, shares_memory=always, **NONE)
register_operation("clone", shape=same, saved=saves_nothing, keeps_order=True, **NONE)
register_operation(
    F.dropout, shape=same, saved=_dropout_mask, shares_memory=lambda node: not drops(node), **NONE
)
