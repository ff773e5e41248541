"""Norms of what a gate multiplies, before or after it."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from zoo.core.initialization import Distribution
from zoo.core.precision import in_dtype, wide


class Gate(nn.Module):
    """x * silu(gate)."""

    def forward(self, x: Tensor, gate: Tensor) -> Tensor:
        return x * F.silu(wide(gate))


class GatedRMSNorm(nn.Module):
    """norm(x) * activation(gate), or norm(x * activation(gate)) if ``gates_first``: ... K and ... K -> ... K.

    norm(x) is x / sqrt(mean(x ** 2) + eps) * weight, with one mean per group.  The gate is applied in float32 at least, as in
    ``Qwen3NextRMSNormGated`` and ``MambaRMSNormGated`` of transformers.
    """

    def __init__(
        self,
        width: int,
        eps: float,
        activation: Callable[[Tensor], Tensor] = F.silu,
        *,
        groups: int = 1,
        gates_first: bool = False,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))
        self.eps, self.activation, self.groups, self.gates_first = eps, activation, groups, gates_first

    def initial(self, leaf: str) -> Distribution:
        """Weights that scale by 1."""
        return Distribution(constant=1.0)

    def forward(self, x: Tensor, gate: Tensor) -> Tensor:
        gate = self.activation(wide(gate))
        return self._norm(x * gate) if self.gates_first else self._norm(x) * gate

    def _norm(self, x: Tensor) -> Tensor:
        weight = in_dtype(self.weight, x.dtype)
        if self.groups == 1:
            return F.rms_norm(x, weight.shape, weight, self.eps)
        apart = x.unflatten(-1, (self.groups, -1))
        return F.rms_norm(apart, apart.shape[-1:], None, self.eps).flatten(-2) * weight
