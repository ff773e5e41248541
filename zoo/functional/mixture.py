"""The outputs of the chosen experts of each token.

Shapes: batch B, length T, width D, experts E, chosen experts K, hidden width H.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from zoo.functional.decorator import semantic_op
from zoo.functional.expert_products import expert_product


class ExpertMatrices(NamedTuple):
    """The matrices of all experts, E N D (d_out x d_in), and their biases, E N, or None."""

    weight: Tensor
    bias: Tensor | None


@semantic_op
def mixture_of_experts(
    x: Tensor,
    weights: Tensor,
    experts: Tensor,
    into: tuple[ExpertMatrices, ...],
    down: ExpertMatrices,
    inner: Callable[..., Tensor],
    *,
    of_input: bool = False,
) -> Tensor:
    """The weighted sum of the chosen experts, down(inner(*into(x))), of each token (Shazeer et al., 2017).

    x: B T D, weights and experts: B T K, ``into``: up, and gate if experts have one -> B T D.  of_input: weights multiply what
    experts read, and their outputs are added as they are (Llama 4).
    """
    chosen = x.unsqueeze(-2)  # B T 1 D
    chosen = chosen * weights.unsqueeze(-1) if of_input else chosen  # B T (K or 1) D
    hidden = inner(*(expert_linear(chosen, *part, experts) for part in into))  # B T K H
    outputs = expert_linear(hidden, *down, experts)  # B T K D
    if of_input:
        return outputs.sum(-2)
    return torch.matmul(weights.unsqueeze(-2), outputs).squeeze(-2)


@semantic_op
def expert_linear(x: Tensor, weight: Tensor, bias: Tensor | None, experts: Tensor) -> Tensor:
    """x @ weight[e]^T + bias[e], where e is the expert chosen for each row of x.

    x: ... K D, or ... 1 D if all chosen experts read the same row; weight: E N D, bias: E N, experts: ... K
    -> ... K N.
    """
    device = x.device.type
    if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        x, weight, bias = x.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)
    return expert_product(x, weight, bias, experts)
