"""The product of rows with the matrices of their experts, in plain operations."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def expert_product(x: Tensor, weight: Tensor, bias: Tensor | None, experts: Tensor) -> Tensor:
    """x @ weight[e]^T + bias[e] for the expert e of each row: ... K D or ... 1 D, E N D, E N, ... K -> ... K N."""
    rows, chosen = x.expand(*experts.shape, x.shape[-1]).flatten(0, -2), experts.flatten()
    result = rows.new_zeros(len(rows), weight.shape[1])
    for expert in range(len(weight)):
        places = (chosen == expert).nonzero()[:, 0]
        product = F.linear(rows[places], weight[expert], None if bias is None else bias[expert])
        result = result.index_add(0, places, product)
    return result.unflatten(0, experts.shape)
