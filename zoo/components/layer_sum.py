"""A weighted sum of what the layers of a stack give: B T D each -> B T D."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from zoo.core.initialization import Distribution
from zoo.core.precision import in_dtype, wide


class WeightedLayerSum(nn.Module):
    """sum(softmax(weights)[i] * x[i]), in float32 or wider, over the input of the first layer and the outputs of all (ELMo:
    Peters et al., 2018; SUPERB: Yang et al., 2021)."""

    component_kind = "weighted_layer_sum"

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.empty(layers + 1))

    def initial(self, leaf: str) -> Distribution:
        """Equal shares."""
        return Distribution(constant=1 / self.weights.numel())

    def forward(self, outputs: Sequence[Tensor]) -> Tensor:
        shares = F.softmax(wide(self.weights), -1)
        stacked = torch.stack([wide(output) for output in outputs], -1)  # B T D layers + 1
        return in_dtype((stacked * shares).sum(-1), outputs[-1].dtype)
