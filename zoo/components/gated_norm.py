"""Norms of what a gate multiplies, before or after it."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import specs.mamba2 as spec
from zoo.initialization import Distribution
from zoo.precision import in_dtype, wide


class GatedRMSNorm(nn.Module):
    """x / sqrt(mean(x ** 2) + eps) * weight * activation(gate): ... K and ... K -> ... K.

    The gate is applied in float32 at least, as in ``Qwen3NextRMSNormGated`` of transformers.
    """

    def __init__(self, width: int, eps: float, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))
        self.eps, self.activation = eps, activation

    def initial(self, leaf: str) -> Distribution:
        """Weights that scale by 1."""
        return Distribution(constant=1.0)

    def forward(self, x: Tensor, gate: Tensor) -> Tensor:
        normed = F.rms_norm(x, self.weight.shape, in_dtype(self.weight, x.dtype), self.eps)
        return normed * self.activation(wide(gate))


class Gate(nn.Module):
    """x * silu(gate)."""

    def forward(self, x: Tensor, gate: Tensor) -> Tensor:
        return x * F.silu(wide(gate))


class GroupedGatedNorm(nn.Module):
    """norm(x * silu(gate)) or norm(x) * silu(gate), with one mean square per group: ... D -> ... D."""

    def __init__(self, spec: spec.GatedNorm, width: int, groups: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))
        self.eps, self.groups, self.gated_first = spec.eps, groups, spec.gate == "before"

    def initial(self, leaf: str) -> Distribution:
        """Weights that scale by 1."""
        return Distribution(constant=1.0)

    def forward(self, x: Tensor, gate: Tensor) -> Tensor:
        gate = F.silu(wide(gate))
        return self._norm(x * gate) if self.gated_first else self._norm(x) * gate

    def _norm(self, x: Tensor) -> Tensor:
        apart = x.unflatten(-1, (self.groups, -1))
        normed = F.rms_norm(apart, apart.shape[-1:], None, self.eps).flatten(-2)
        return normed * in_dtype(self.weight, normed.dtype)
