"""The embeddings of waveforms: frames of samples through convolutions over time.

Shapes: batch B, samples N, frames T, channels C, width D.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn

import specs.kinds.waveform as spec
from specs.kinds import norm
from zoo import functional
from zoo.components.activation import activation
from zoo.components.convolution import Convolution1d
from zoo.components.embedding import Embedding
from zoo.components.linear import Linear
from zoo.components.norm import LayerNorm
from zoo.context import StackContext
from zoo.core.initialization import Distribution
from zoo.core.precision import in_dtype, wide
from zoo.registry import build_component, builds

EPS = 1e-5
"""The number added to variances among the convolutions."""


class TimeNorm(nn.Module):
    """(x - mean) / sqrt(variance + eps) * weight + bias, with the statistics of each channel over time: B C N -> B C N."""

    axes: ClassVar[tuple[int, ...]] = (2,)
    """The axes that the statistics are taken over."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(channels)), nn.Parameter(torch.empty(channels))

    def initial(self, leaf: str) -> Distribution:
        """A weight that scales by 1, and a bias of 0."""
        return Distribution(constant=1.0 if leaf == "weight" else 0.0)

    def forward(self, x: Tensor) -> Tensor:
        x = wide(x)
        centred = x - x.mean(self.axes, keepdim=True)
        variance = (centred * centred).mean(self.axes, keepdim=True)
        normed = centred * torch.rsqrt(variance + EPS)
        return in_dtype(normed * self.weight[:, None] + self.bias[:, None], self.weight.dtype)


class RecordingNorm(TimeNorm):
    """The same with the statistics of all channels over time."""

    axes = (1, 2)


class ChannelNorm(LayerNorm):
    """Layer norm of the channels at each time: B C N -> B C N."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.transpose(1, 2)).transpose(1, 2)


class StemLayer(nn.Module):
    """activation(norm(convolution(x))): B C N -> B C' N'."""

    def __init__(self, spec: spec.Waveform, index: int, channels: int, context: StackContext) -> None:
        super().__init__()
        own = spec.convolutions[index]
        self.convolution = Convolution1d(
            channels, own.channels, own.kernel, stride=own.stride, bias=spec.bias
        )
        self.norm: nn.Module = nn.Identity()
        self.is_centred = index == 0 and spec.convolution_norm != "layer"
        if spec.convolution_norm == "layer":
            self.norm = ChannelNorm(norm.LayerNorm(eps=EPS), replace(context, d_model=own.channels))
        elif self.is_centred:
            self.norm = TimeNorm(own.channels)
        self.activation = activation(spec.activation)

    def without_gradient(self) -> dict[str, str]:
        """The bias of the convolution before a norm of each channel over time, whose mean contains it."""
        centred = "convolution biases before a norm over time, which subtracts them"
        return {"convolution.bias": centred} if self.is_centred else {}

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.norm(self.convolution(x)))


class SampledEmbedding(Embedding):
    """The base of embeddings of samples; padding follows the samples of a row."""

    def __init__(self, spec: spec.SampledKind, context: StackContext) -> None:
        super().__init__(spec, context)
        self.takes_mask = spec.takes_mask
        self.windows = [(layer.kernel, layer.stride) for layer in spec.convolutions]

    def mask_and_positions(self, inputs: Tensor, mask: Tensor | None) -> tuple[Tensor | None, Tensor]:
        """The mask of the frames, and their positions: B N -> B T, or 1 T.

        Raises :class:`TypeError` for a mask that the model does not take.
        """
        length = inputs.shape[1]
        for kernel, stride in self.windows:
            length = (length - kernel) // stride + 1
        positions = functional.positions_from(0, length, inputs)[None]  # 1 T
        if mask is None:
            return None, positions
        if not self.takes_mask:
            raise TypeError(
                "this model takes no attention_mask: the norm of its first convolution includes padding, which is zeros"
            )
        return self.real_frames(mask, positions), positions

    def real_frames(self, mask: Tensor, positions: Tensor) -> Tensor:
        """The mask of the frames, from the mask of the samples: B N and 1 T -> B T."""
        count = mask.sum(1)  # B
        for kernel, stride in self.windows:
            count = (count - (kernel - stride)).clamp(min=0) // stride
        return (positions < count[:, None]).to(torch.int64)


@builds(spec.Waveform)
class Waveform(SampledEmbedding):
    """norm(x + position(x)) with x = projection(norm(convolutions(samples))); the frames of padding are 0 in x."""

    def __init__(self, spec: spec.Waveform, context: StackContext) -> None:
        super().__init__(spec, context)
        widths = [1, *(layer.channels for layer in spec.convolutions)]
        self.layers = nn.ModuleList(
            StemLayer(spec, index, widths[index], context) for index in range(len(spec.convolutions))
        )
        inner = replace(context, d_model=widths[-1])
        self.projection_norm = (
            nn.Identity() if spec.projection_norm is None else build_component(spec.projection_norm, inner)
        )
        self.projection = Linear(widths[-1], context.d_model)
        self.norm = nn.Identity() if spec.norm is None else build_component(spec.norm, context)
        self.dropout = nn.Dropout(spec.dropout)

    def forward(
        self, input_values: Tensor, positions: Tensor, token_type_ids: None = None, mask: Tensor | None = None
    ) -> Tensor:
        """input_values: B N, mask: B N -> B T D."""
        x = input_values[:, None]  # B 1 N
        for layer in self.layers:
            x = layer(x)  # B C N'
        x = wide(self.projection(self.projection_norm(x.transpose(1, 2))))  # B T D
        if mask is None:
            return self.dropout(self.norm(self.position.embed(x, positions)))
        real = self.real_frames(mask, positions)[..., None].to(x.dtype)  # B T 1
        return self.dropout(self.norm(self.position.embed_real(x * real, positions, real)))


@builds(spec.FilteredWaveform)
class FilteredWaveform(SampledEmbedding):
    """x + position(x) with x = convolutions(norm(activation(filters(samples)))), each convolution with an activation."""

    def __init__(self, spec: spec.FilteredWaveform, context: StackContext) -> None:
        super().__init__(spec, context)
        first = spec.convolutions[0]
        self.filters = Convolution1d(1, first.channels, first.kernel, stride=first.stride, bias=False)
        self.filter_activation = activation(spec.filter_activation)
        self.norm = RecordingNorm(first.channels)
        self.layers = nn.ModuleList(
            Convolution1d(before.channels, layer.channels, layer.kernel, stride=layer.stride)
            for before, layer in pairwise(spec.convolutions)
        )
        self.activation = activation(spec.activation)

    def forward(
        self, input_values: Tensor, positions: Tensor, token_type_ids: None = None, mask: None = None
    ) -> Tensor:
        """input_values: B N -> B T D."""
        x = self.norm(self.filter_activation(self.filters(input_values[:, None])))  # B C N'
        for layer in self.layers:
            x = self.activation(layer(x))  # B C N'
        return self.position.embed(wide(x.transpose(1, 2)), positions)  # B T D
