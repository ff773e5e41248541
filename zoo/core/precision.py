"""Mixed precision.

A model whose weights are in half (float16 or bfloat16) computes matrix products in half, and in float32 what half has no
room for: the residual stream of blocks that do not normalise it, the statistics of norms, routing, and outputs.  In float32
and float64 nothing is cast at all.
"""

from __future__ import annotations

import torch
from torch import Tensor


def in_dtype(x: Tensor, dtype: torch.dtype) -> Tensor:
    """x in a dtype; no call at all, for a tracer too, where it is so already."""
    return x if x.dtype == dtype else x.to(dtype)


def wide(x: Tensor) -> Tensor:
    """x in float32 at least."""
    return in_dtype(x, torch.promote_types(x.dtype, torch.float32))
