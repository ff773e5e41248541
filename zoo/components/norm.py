"""Normalisations: B T D -> B T D."""

from __future__ import annotations

from torch import nn

import specs.norm as spec
from zoo.context import BuildContext
from zoo.registry import builds


@builds(spec.LayerNorm)
class LayerNorm(nn.LayerNorm):
    """(x - mean) / sqrt(variance + eps) * weight + bias."""

    def __init__(self, spec: spec.LayerNorm, context: BuildContext) -> None:
        super().__init__(context.d_model, eps=spec.eps, bias=spec.bias)

    def reset_parameters(self) -> None:
        """Nothing: the builder fills all weights."""


@builds(spec.RMSNorm)
class RMSNorm(nn.RMSNorm):
    """x / sqrt(mean(x ** 2) + eps) * weight."""

    def __init__(self, spec: spec.RMSNorm, context: BuildContext) -> None:
        super().__init__(context.d_model, eps=spec.eps)

    def reset_parameters(self) -> None:
        """Nothing: the builder fills all weights."""


@builds(spec.NoNorm)
class NoNorm(nn.Identity):
    """x."""

    def __init__(self, spec: spec.NoNorm, context: BuildContext) -> None:
        super().__init__()
