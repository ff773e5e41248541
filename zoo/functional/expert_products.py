"""The products of each row with the matrix of its own expert, as PyTorch operations of their own.

Rows are sorted by expert, so that each expert's matrix is read once and only if some row chose it.  As the number of rows per
expert depends on data, compilers see each product as one operation.  (``torch.library.custom_op`` would import the compiler with
the first product, and ``torch.nn.functional.grouped_mm`` takes neither float64 nor widths that are no multiples of 16 bytes.)

Shapes: rows ... K D, experts E, matrices E N D (d_out x d_in).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

_PRODUCT, _WEIGHT_GRADIENT = "zoo::expert_product", "zoo::expert_weight_gradient"
torch.library.define(_PRODUCT, "(Tensor x, Tensor weight, Tensor? bias, Tensor experts) -> Tensor")
torch.library.define(_WEIGHT_GRADIENT, "(Tensor grad, Tensor x, Tensor experts, int count) -> Tensor")


def _segments(experts: Tensor, count: int) -> Iterator[tuple[int, Tensor]]:
    """Yield each expert, and the flat indices of the rows that chose it."""
    order = experts.flatten().argsort(stable=True)
    sizes = torch.bincount(experts.flatten(), minlength=count).tolist()
    yield from zip(range(count), order.split(sizes), strict=False)


def _rows(x: Tensor, experts: Tensor) -> tuple[Tensor, int]:
    """The rows of ``x``, and how many choices read each."""
    if x.shape[:-2] != experts.shape[:-1] or x.shape[-2] not in (1, experts.shape[-1]):
        raise ValueError(
            f"Rows of shape {(*x.shape,)} do not fit chosen experts of shape {(*experts.shape,)}: each row has one "
            "choice, or one row has them all."
        )
    return x.flatten(0, -2), experts.shape[-1] // x.shape[-2]


@torch.library.impl(_PRODUCT, "default")
def _product(x: Tensor, weight: Tensor, bias: Tensor | None, experts: Tensor) -> Tensor:
    """x @ weight[e]^T + bias[e] for the expert e of each row: ... K D or ... 1 D, E N D, E N, ... K -> ... K N.

    Rows that choose expert E, one that is elsewhere, are 0.
    """
    rows, readers = _rows(x, experts)
    result = x.new_zeros(experts.numel(), weight.shape[1])
    for expert, places in _segments(experts, len(weight)):
        if len(places):
            added = None if bias is None else bias[expert]
            read = rows.index_select(0, places // readers)
            result.index_copy_(0, places, F.linear(read, weight[expert], added))
    return result.unflatten(0, experts.shape)


@torch.library.impl(_WEIGHT_GRADIENT, "default")
def _weight_gradient(grad: Tensor, x: Tensor, experts: Tensor, count: int) -> Tensor:
    """The gradient of the product for its weight: ... K N, ... K D or ... 1 D, ... K -> E N D."""
    (rows, readers), flat = _rows(x, experts), grad.flatten(0, -2)
    result = x.new_empty(count, grad.shape[-1], x.shape[-1])
    for expert, places in _segments(experts, count):  # a product over no rows is 0
        read = rows.index_select(0, places // readers)
        torch.mm(flat.index_select(0, places).t(), read, out=result[expert])
    return result


@torch.library.impl(_PRODUCT, "Meta")
def _product_shape(x: Tensor, weight: Tensor, bias: Tensor | None, experts: Tensor) -> Tensor:
    return x.new_empty(*experts.shape, weight.shape[1])


@torch.library.impl(_WEIGHT_GRADIENT, "Meta")
def _weight_gradient_shape(grad: Tensor, x: Tensor, experts: Tensor, count: int) -> Tensor:
    return x.new_empty(count, grad.shape[-1], x.shape[-1])


@register_flop_formula(torch.ops.zoo.expert_product)
def _product_flops(x: Any, weight: Any, bias: Any, experts: Any, **options: Any) -> int:
    """2 N D per choice, of shapes."""
    return 2 * math.prod(experts) * weight[1] * weight[2]


@register_flop_formula(torch.ops.zoo.expert_weight_gradient)
def _weight_gradient_flops(grad: Any, x: Any, experts: Any, count: int, **options: Any) -> int:
    return 2 * math.prod(grad) * int(x[-1])


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, weight, _, experts = inputs
    for_x, for_weight, *_ = ctx.needs_input_grad
    ctx.sizes = len(weight), x.shape[-2]
    ctx.save_for_backward(x if for_weight else None, weight if for_x else None, experts)


def _for_rows(grad: Tensor, weight: Tensor, experts: Tensor, rows: int) -> Tensor:
    """The gradient of the product for x: ... K N, E N D, ... K -> ... K D, or ... 1 D if all choices read one row."""
    for_x: Tensor = expert_product(grad, weight.mT, None, experts)  # ... K D
    return for_x if rows == experts.shape[-1] else for_x.sum(-2, keepdim=True)


def _gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, weight, experts = ctx.saved_tensors
    count, choices = ctx.sizes
    for_x = for_weight = for_bias = None
    if weight is not None:
        for_x = _for_rows(grad, weight, experts, choices)
    if x is not None:
        for_weight = torch.ops.zoo.expert_weight_gradient(grad, x, experts, count)
    if ctx.needs_input_grad[2]:
        zeros = grad.new_zeros(count + 1, grad.shape[-1])
        for_bias = zeros.index_add(0, experts.flatten(), grad.flatten(0, -2))[:count]
    return for_x, for_weight, for_bias, None


def _keep_factors(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    grad, x, experts, _ = inputs
    ctx.save_for_backward(grad, x, experts)


def _second_gradients(ctx: Any, second: Tensor) -> tuple[Tensor | None, ...]:
    grad, x, experts = ctx.saved_tensors
    return expert_product(x, second, None, experts), _for_rows(grad, second, experts, x.shape[-2]), None, None


torch.library.register_autograd(_PRODUCT, _gradients, setup_context=_keep)
torch.library.register_autograd(_WEIGHT_GRADIENT, _second_gradients, setup_context=_keep_factors)
expert_product = torch.ops.zoo.expert_product
