"""The head in which two encoders meet."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import specs.kinds.contrastive as spec
from zoo.context import StackContext
from zoo.core.initialization import Distribution
from zoo.core.precision import wide
from zoo.registry import builds


@builds(spec.Contrastive)
class Contrastive(nn.Module):
    """text_embeds: N W, image_embeds: M W, and their products times exp(scale), plus bias: M N, and N M."""

    def __init__(self, spec: spec.Contrastive, context: StackContext) -> None:
        super().__init__()
        self._initial = {"scale": spec.log_scale, "bias": spec.bias or 0.0}
        self.scale = nn.Parameter(torch.empty(1))
        self.bias = None if spec.bias is None else nn.Parameter(torch.empty(1))

    def initial(self, leaf: str) -> Distribution:
        """As the spec states them."""
        return Distribution(constant=self._initial[leaf])

    def forward(self, text: Tensor, image: Tensor) -> dict[str, Tensor]:
        logits = wide(image) @ wide(text).transpose(0, 1) * wide(self.scale).exp()  # M N
        if self.bias is not None:
            logits = logits + self.bias
        return {
            "logits_per_image": logits,
            "logits_per_text": logits.transpose(0, 1),
            "text_embeds": text,
            "image_embeds": image,
        }
