"""LayerScale: B T D -> B T D."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from zoo.core.initialization import Distribution
from zoo.core.precision import in_dtype, wide


class LayerScale(nn.Module):
    """x * weight, in float32 or wider, with a trained factor per feature (Touvron et al., 2021)."""

    component_kind = "layer_scale"

    def __init__(self, start: float, d_model: int) -> None:
        super().__init__()
        self.start = start
        self.weight = nn.Parameter(torch.empty(d_model))

    def initial(self, leaf: str) -> Distribution:
        """The same value for every feature."""
        return Distribution(constant=self.start)

    def forward(self, x: Tensor) -> Tensor:
        x = wide(x)
        return x * in_dtype(self.weight, x.dtype)
