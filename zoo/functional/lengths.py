"""Vectors of a length."""

from __future__ import annotations

import torch
from torch import Tensor

from zoo.core.precision import wide
from zoo.functional.decorator import semantic_op


@semantic_op
def unit_length(x: Tensor, eps: float) -> Tensor:
    """Vectors of length 1, in float32 at least, with ``eps`` added to the square of their length: ... K -> ... K."""
    x = wide(x)
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + eps)
