"""Normalisations: B T D -> B T D.

Each computes in the dtype of x, with statistics in float32 or wider; the result has the dtype of the weights.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.fx import Proxy

import specs.kinds.norm as spec
from specs.base.base import Component
from zoo.context import BuildContext
from zoo.core.facts import UNIT_OFFSET
from zoo.core.initialization import Distribution
from zoo.core.precision import in_dtype, wide
from zoo.registry import build_component, builds


@builds(spec.LayerNorm)
class LayerNorm(nn.LayerNorm):
    """(x - mean) / sqrt(variance + eps) * weight + bias, or * (1 + weight) + bias."""

    def __init__(self, spec: spec.LayerNorm, context: BuildContext) -> None:
        super().__init__(context.d_model, eps=spec.eps, bias=spec.bias)
        self.unit_offset = spec.unit_offset
        if not spec.weight:
            self.register_parameter("weight", None)

    def reset_parameters(self) -> None:
        """No-op: the builder initializes all weights."""

    def initial(self, leaf: str) -> Distribution:
        """Weights that scale by 1, and biases of 0."""
        return Distribution(constant=1.0 if leaf == "weight" and not self.unit_offset else 0.0)

    def forward(self, x: Tensor) -> Tensor:
        weight, bias = (
            None if part is None else in_dtype(part, x.dtype) for part in (self.weight, self.bias)
        )
        if weight is not None and self.unit_offset:
            weight = weight + 1.0
        normed = F.layer_norm(x, self.normalized_shape, weight, bias, self.eps)
        return normed if self.weight is None else in_dtype(normed, self.weight.dtype)


@builds(spec.RMSNorm)
class RMSNorm(nn.RMSNorm):
    """x / sqrt(mean(x ** 2) + eps) * weight, or * (1 + weight)."""

    def __init__(self, spec: spec.RMSNorm, context: BuildContext) -> None:
        super().__init__(context.d_model, eps=spec.eps, elementwise_affine=spec.weight)
        self.unit_offset = spec.unit_offset

    def reset_parameters(self) -> None:
        """No-op: the builder initializes all weights."""

    def initial(self, leaf: str) -> Distribution:
        """Weights that scale by 1."""
        return Distribution(constant=0.0 if self.unit_offset else 1.0)

    def forward(self, x: Tensor) -> Tensor:
        weight = None if self.weight is None else in_dtype(self.weight, x.dtype)
        if weight is not None and self.unit_offset:
            weight = weight + 1.0
        normed = F.rms_norm(x, self.normalized_shape, weight, self.eps)
        return normed if self.weight is None else in_dtype(normed, self.weight.dtype)


@builds(spec.BatchNorm)
class BatchNorm(nn.Module):
    """(x - mean) / sqrt(variance + eps) * weight + bias; mean and variance are buffers, or in training the statistics of x."""

    mean: Tensor
    variance: Tensor

    def __init__(self, spec: spec.BatchNorm, context: BuildContext) -> None:
        super().__init__()
        self.eps, self.momentum = spec.eps, spec.momentum
        self.weight = nn.Parameter(torch.empty(context.d_model))
        self.bias = nn.Parameter(torch.empty(context.d_model))
        self.register_buffer("mean", torch.empty(context.d_model))
        self.register_buffer("variance", torch.empty(context.d_model))

    def initial(self, leaf: str) -> Distribution:
        """The identity."""
        return Distribution(constant=1.0 if leaf in ("weight", "variance") else 0.0)

    def forward(self, x: Tensor) -> Tensor:
        x = wide(x)
        mean, variance = self._of_batch(x) if self.training else (wide(self.mean), wide(self.variance))
        factor = torch.rsqrt(variance + self.eps) * wide(self.weight)
        return in_dtype((x - mean) * factor + wide(self.bias), self.weight.dtype)

    def _of_batch(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The statistics of x, which enter the running averages: ... D -> D and D."""
        rows = x.flatten(0, -2)  # N D
        mean: Any = rows.mean(0)
        variance = (rows - mean).pow(2).mean(0)
        if not isinstance(mean, Proxy):  # a trace changes no buffers
            self._average(mean, variance, len(rows))
        return mean, variance

    @torch.no_grad()
    def _average(self, mean: Tensor, variance: Tensor, count: int) -> None:
        """Enter the statistics of a batch, with the unbiased variance, into the running averages."""
        self.mean.lerp_(mean.to(self.mean.dtype), self.momentum)
        unbiased = variance * (count / max(count - 1, 1))
        self.variance.lerp_(unbiased.to(self.variance.dtype), self.momentum)


@builds(spec.Affine)
class Affine(nn.Module):
    """x * weight + bias."""

    def __init__(self, spec: spec.Affine, context: BuildContext) -> None:
        super().__init__()
        self.weight, self.bias = (nn.Parameter(torch.empty(context.d_model)) for _ in range(2))

    def initial(self, leaf: str) -> Distribution:
        """Weights that scale by 1, and biases of 0."""
        return Distribution(constant=1.0 if leaf == "weight" else 0.0)

    def forward(self, x: Tensor) -> Tensor:
        return in_dtype(x * in_dtype(self.weight, x.dtype) + in_dtype(self.bias, x.dtype), self.weight.dtype)


@builds(spec.NoNorm)
class NoNorm(nn.Identity):
    """x."""

    def __init__(self, spec: spec.NoNorm, context: BuildContext) -> None:
        super().__init__()


class PerHeadNorm(nn.Module):
    """A norm with separate weights for every head, H K: B T H K -> B T H K."""

    parameter_role = "norms"
    weight: nn.Parameter | None
    bias: nn.Parameter | None

    def __init__(self, spec: Component, heads: int, context: BuildContext) -> None:
        super().__init__()
        self.norm = build_component(spec, context)  # the computation alone: weights are removed below
        self.offset = float(UNIT_OFFSET.of(self.norm))
        for leaf in ("weight", "bias"):
            shape = None if self.norm._parameters.get(leaf) is None else (heads, context.d_model)
            self.register_parameter(leaf, None if shape is None else nn.Parameter(torch.empty(shape)))
        for leaf in list(self.norm._parameters):
            self.norm.register_parameter(leaf, None)
        self.norm.unit_offset = False  # type: ignore[assignment]

    def initial(self, leaf: str) -> Distribution:
        """The initial values of the norm."""
        return Distribution(constant=1.0 - self.offset if leaf == "weight" else 0.0)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(x)
        if self.weight is not None:
            x = x * (self.weight + self.offset)
        return x if self.bias is None else x + self.bias
