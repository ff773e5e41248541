"""The gated delta rule as a PyTorch operation of its own.

Compilers, counters of FLOPs and autograd see one call: the number of chunks depends on the length, and what chunks compute is
computed again for the gradient, so that only the inputs are kept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from zoo.functional.decorator import semantic_op
from zoo.functional.delta import delta_rule, matrix_products

_RULE = "zoo::gated_delta_rule"
_INPUTS = "Tensor query, Tensor key, Tensor value, Tensor decay, Tensor beta, Tensor? state, Tensor? real"
torch.library.define(_RULE, f"({_INPUTS}) -> (Tensor, Tensor)")

Inputs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor | None, Tensor | None]


@semantic_op
def gated_delta_rule(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    decay: Tensor,
    beta: Tensor,
    state: Tensor | None,
    real: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """S_t = a_t S_{t-1} + beta_t k_t (v_t - a_t S_{t-1}^T k_t)^T and S_t^T q_t of every token, and the last S.

    Yang et al., 2024 (Gated DeltaNet), and with a decay per channel the Kimi team, 2025 (Kimi Linear).

    query and key: B G T K with G dividing H, value: B H T V, decay: log(a), at most 0, B H T or B H T K, beta: B H T,
    state: B H K V, or None for zeros, real: B T, 0 for padding, which changes no state, or None for no padding -> B H T V
    in the dtype of the query, and B H K V.  States are float32, or float64 for float64 inputs, and so is everything
    inside.
    """
    results: tuple[Tensor, Tensor] = torch.ops.zoo.gated_delta_rule(
        query, key, value, decay, beta, state, real
    )
    return results


@contextlib.contextmanager
def _as_given(like: Tensor) -> Iterator[None]:
    """Computes in the dtypes of the operands, under autocast too."""
    device = like.device.type
    if not torch.amp.is_autocast_available(device):
        yield
        return
    with torch.autocast(device, enabled=False):
        yield


@torch.library.impl(_RULE, "default")
def _rule(query: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    with _as_given(query):
        mixed, last = delta_rule(query, *rest)
    return mixed.to(query.dtype).contiguous(), last


@torch.library.register_fake(_RULE)  # type: ignore[untyped-decorator]
def _shapes(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    batch, heads, _, out = value.shape
    inside = torch.promote_types(query.dtype, torch.float32)
    last = query.new_empty(batch, heads, query.shape[3], out, dtype=inside)
    return query.new_empty(value.shape), last


@register_flop_formula(torch.ops.zoo.gated_delta_rule)
def _flops(query: Any, key: Any, value: Any, decay: Any, *rest: Any, **options: Any) -> int:
    """The matrix products, of shapes."""
    batch, heads, tokens, out = value
    return matrix_products(batch * heads, tokens, query[3], out, per_channel=len(decay) == 4)


def _keep(ctx: Any, inputs: Inputs, output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs)


def _gradients(ctx: Any, for_mixed: Tensor, for_last: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients of the inputs, by way of chunks that are computed again."""
    needed = ctx.needs_input_grad
    with torch.enable_grad(), _as_given(for_mixed):
        inputs = [
            each.detach().requires_grad_() if wanted else each
            for each, wanted in zip(ctx.saved_tensors, needed, strict=True)
        ]
        mixed, last = delta_rule(*inputs)
        trained = [each for each, wanted in zip(inputs, needed, strict=True) if wanted]
        found = iter(torch.autograd.grad((mixed, last), trained, (for_mixed.to(mixed.dtype), for_last)))
    return tuple(next(found) if wanted else None for wanted in needed)


torch.library.register_autograd(_RULE, _gradients, setup_context=_keep)
