"""Conformer blocks.

Shapes: batch B, vectors T, width D.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import specs.kinds.conformer as spec
from zoo.components.activation import activation
from zoo.components.block import Block, Branch, LayerCall
from zoo.components.convolution import Convolution1d
from zoo.components.linear import Linear
from zoo.components.mixer import MixerContext
from zoo.context import BuildContext
from zoo.core.precision import wide
from zoo.core.sharding import Sharding
from zoo.registry import build_component, builds


class ConvolutionModule(nn.Module):
    """output(activation(norm(depthwise(a * sigmoid(b))))), with a and b from the input and 0 at padding."""

    component_kind = "convolution"

    def __init__(self, spec: spec.ConvolutionModule, context: BuildContext) -> None:
        super().__init__()
        width = context.d_model
        self.input = Linear(width, 2 * width, bias=spec.bias)
        self.before = spec.kernel - 1 if spec.causal else spec.kernel // 2
        self.depthwise = Convolution1d(
            width, width, spec.kernel, padding=self.before, groups=width, bias=spec.bias
        )
        self.norm = build_component(spec.norm, context)
        self.activation = activation(spec.activation)
        self.output = Linear(width, width, bias=spec.bias)

    def sharding(self) -> Sharding:
        """Whole on every process, as the norm reads all channels."""
        return Sharding()

    def forward(self, x: Tensor, context: MixerContext) -> Tensor:
        """x: B T D -> B T D.  Padding comes before all real vectors as the convolution sees them."""
        a, b = self.input(x).chunk(2, -1)  # B T D each
        x, alignment = a * torch.sigmoid(b), context.alignment(1)
        if alignment is not None:
            x = x * context.real[..., None].to(x.dtype)  # type: ignore[index]
            x = F.embedding(alignment.columns, x.flatten(0, 1))
        x = self.depthwise(x.transpose(1, 2))[:, :, : x.shape[1]].transpose(1, 2)  # B T D
        if alignment is not None:
            x = F.embedding(alignment.tokens, x.flatten(0, 1))
        return self.output(self.activation(self.norm(x)))


@builds(spec.Conformer)
class Conformer(Block):
    """norm(y) with y = x + the sum of f(norm(x)) over the branches f in turn, half of each feed-forward."""

    def __init__(self, spec: spec.Conformer, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.first_feed_forward = build_component(spec.feed_forward, context)
        self.convolution = ConvolutionModule(spec.convolution, context)
        self.add_norms(spec, context)
        self.output_norm = build_component(spec.norm, context)

    def branch(self, name: str) -> Branch:
        if name == "first_feed_forward":
            return lambda x, call: self.first_feed_forward(x)
        if name == "convolution":
            return lambda x, call: self.convolution(x, call.context)
        return super().branch(name)

    def residual_of(self, branch: str) -> nn.Module:
        return super().residual_of("feed_forward" if branch == "first_feed_forward" else branch)

    def layer(self, x: Tensor, call: LayerCall) -> Tensor:
        x = wide(x)
        for name, branch in self.branches():
            x = self.joined(name, x, branch(self.norm_of(name)(x), call))
        return self.output_norm(x)
