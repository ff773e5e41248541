"""The gated delta rule, and the generalized one, as PyTorch operations of their own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from zoo.functional.decorator import semantic_op
from zoo.functional.delta import delta_rule, matrix_products
from zoo.functional.generalized_delta import generalized_products, generalized_rule
from zoo.functional.recomputed import define_operation

define_operation(
    "zoo::gated_delta_rule",
    "Tensor query, Tensor key, Tensor value, Tensor decay, Tensor beta, Tensor? state, Tensor? real",
    delta_rule,
)
define_operation(
    "zoo::generalized_delta_rule",
    "Tensor query, Tensor key, Tensor value, Tensor decay, Tensor recall, Tensor erase, Tensor? state, Tensor? real",
    generalized_rule,
)


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


@semantic_op
def generalized_delta_rule(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    decay: Tensor,
    recall: Tensor,
    erase: Tensor,
    state: Tensor | None,
    real: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """S_t = (I - e_t r_t^T) diag(w_t) S_{t-1} + k_t v_t^T and S_t^T q_t of every token, and the last S.

    Peng et al., 2025 (RWKV-7), where r_t is the removal key divided by w_t: the state is decayed before it is read.

    query, key, recall (r) and erase (e): B H T K, value: B H T V, decay: log(w), at most 0, B H T K, state: B H K V, or None
    for zeros, real: B T, 0 for padding, which changes no state, or None for no padding -> B H T V in the dtype of the query,
    and B H K V.  States are float32, or float64 for float64 inputs, and so is everything inside.
    """
    results: tuple[Tensor, Tensor] = torch.ops.zoo.generalized_delta_rule(
        query, key, value, decay, recall, erase, state, real
    )
    return results


@register_flop_formula(torch.ops.zoo.gated_delta_rule)
def _gated_flops(query: Any, key: Any, value: Any, decay: Any, *rest: Any, **options: Any) -> int:
    """The matrix products, of shapes."""
    batch, heads, tokens, out = value
    return matrix_products(batch * heads, tokens, query[3], out, per_channel=len(decay) == 4)


@register_flop_formula(torch.ops.zoo.generalized_delta_rule)
def _generalized_flops(query: Any, key: Any, value: Any, *rest: Any, **options: Any) -> int:
    """The matrix products, of shapes."""
    batch, heads, tokens, out = value
    return generalized_products(batch * heads, tokens, query[3], out)
