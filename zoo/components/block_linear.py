"""Linear layers of blocks of channels: each block has a matrix of its own.

Shapes: batch B, tokens T, heads H, width of a head's inputs K, and of its outputs V.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from zoo.core.initialization import Distribution
from zoo.core.precision import in_dtype


class BlockLinear(nn.Module):
    """A linear layer for each block of channels: B T (H K) -> B T (H V), with weights H K V and biases H V."""

    def __init__(self, heads: int, width: int, out: int, *, bias: bool = True) -> None:
        super().__init__()
        self.heads, self.fans = heads, (width, out)
        self.weight = nn.Parameter(torch.empty(heads, width, out))
        self.bias = nn.Parameter(torch.empty(heads, out)) if bias else None

    def initial(self, leaf: str) -> Distribution | None:
        """Biases of 0."""
        return Distribution(constant=0.0) if leaf == "bias" else None

    def forward(self, x: Tensor) -> Tensor:
        return self.of_blocks(x.unflatten(-1, (self.heads, -1)))

    def of_blocks(self, x: Tensor) -> Tensor:
        """The same for inputs block by block: B T H K -> B T (H V)."""
        blocks = in_dtype(x, self.weight.dtype).flatten(0, 1).transpose(0, 1)  # H (B T) K
        mapped = blocks @ self.weight  # H (B T) V
        if self.bias is not None:
            mapped = mapped + self.bias[:, None]
        return mapped.transpose(0, 1).flatten(1).unflatten(0, x.shape[:2])
