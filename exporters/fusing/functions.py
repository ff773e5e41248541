"""What targets have operations for, beyond the functions that models call.

A rewritten graph calls these; none is ever run by PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo.tracing.facts import Facts, rule


def joined_linear(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor] = ()) -> Tensor:
    """x @ weight^T + bias for several weights, side by side: ... D -> ... (N1 + N2 + ...)."""
    return F.linear(x, torch.cat([*weights]), torch.cat([*biases]) if biases else None)


@rule(joined_linear)
def _joined_linear(x: Facts, weights: Sequence[Facts], biases: Sequence[Facts] = ()) -> Facts:
    return Facts((*x.shape[:-1], sum(weight.shape[0] for weight in weights)), x.dtype)
