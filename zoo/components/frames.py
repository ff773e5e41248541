"""The embeddings of spectrograms of any length.

Shapes: batch B, frames N, vectors T, mel bins M, channels C, width D.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

import specs.kinds.frames as spec
from zoo import functional
from zoo.components.activation import activation
from zoo.components.convolution import Convolution2d
from zoo.components.embedding import Embedding
from zoo.components.linear import Linear
from zoo.components.scaling import scaled
from zoo.context import StackContext
from zoo.core.precision import wide
from zoo.registry import build_component, builds


class FramesEmbedding(Embedding):
    """The base of embeddings of frames; padding follows the frames of a row."""

    strides: tuple[int, ...] = ()
    """The steps of the convolutions over time, each of which sees its place in the middle of its kernel."""

    def mask_and_positions(self, inputs: Tensor, mask: Tensor | None) -> tuple[Tensor | None, Tensor]:
        """The mask of the vectors, and their positions: B N -> B T, and 1 T."""
        length = inputs.shape[1]
        for stride in self.strides:
            length = (length - 1) // stride + 1
        positions = functional.positions_from(0, length, inputs)[None]  # 1 T
        if mask is None:
            return None, positions
        count = mask.sum(1)  # B
        for stride in self.strides:
            count = (count + (stride - 1)) // stride
        return (positions < count[:, None]).to(torch.int64), positions


@builds(spec.Frames)
class Frames(FramesEmbedding):
    """projection(norm(frames)) + position."""

    def __init__(self, spec: spec.Frames, context: StackContext) -> None:
        super().__init__(spec, context)
        inner = replace(context, d_model=spec.width)
        self.norm = nn.Identity() if spec.norm is None else build_component(spec.norm, inner)
        self.projection = Linear(spec.width, context.d_model)
        self.dropout = nn.Dropout(spec.dropout)

    def forward(
        self,
        input_features: Tensor,
        positions: Tensor,
        token_type_ids: None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """input_features: B T M -> B T D."""
        x = wide(self.projection(self.norm(input_features)))  # B T D
        return self.dropout(self.position.embed(x, positions))


class Subsampling(nn.Module):
    """activation(pointwise(convolution(x))), the second time over channels alone: B C N M -> B C' N' M'."""

    def __init__(self, spec: spec.SubsampledSpectrogram, *, first: bool) -> None:
        super().__init__()
        before, groups = (1, 1) if first else (spec.channels, spec.channels)
        self.convolution = Convolution2d(
            before, spec.channels, spec.kernel, stride=spec.stride, padding=spec.kernel // 2, groups=groups
        )
        self.pointwise = nn.Identity() if first else Convolution2d(spec.channels, spec.channels, 1)
        self.activation = activation(spec.activation)

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.pointwise(self.convolution(x)))


@builds(spec.SubsampledSpectrogram)
class SubsampledSpectrogram(FramesEmbedding):
    """scale * projection(convolutions(frames)) + position; frames of padding are 0 before every convolution."""

    def __init__(self, spec: spec.SubsampledSpectrogram, context: StackContext) -> None:
        super().__init__(spec, context)
        self.strides = (spec.stride,) * spec.convolutions
        self.layers = nn.ModuleList(Subsampling(spec, first=index == 0) for index in range(spec.convolutions))
        self.projection = Linear(spec.channels * spec.bins_left, context.d_model)
        self.scale = context.d_model**0.5 if spec.scale == "sqrt_d_model" else spec.scale or 1.0
        self.dropout = nn.Dropout(spec.dropout)

    def forward(
        self,
        input_features: Tensor,
        positions: Tensor,
        token_type_ids: None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """input_features: B N M, mask: B N -> B T D."""
        x = input_features[:, None]  # B 1 N M
        count = None if mask is None else mask.sum(1)  # B
        for layer, stride in zip(self.layers, self.strides, strict=True):
            x = layer(_without_padding(x, count))  # B C N' M'
            count = None if count is None else (count + (stride - 1)) // stride
        x = _without_padding(x, count).transpose(1, 2).flatten(2)  # B T (C M')
        x = scaled(wide(self.projection(x)), self.scale)  # B T D
        return self.dropout(self.position.embed(x, positions))


def _without_padding(x: Tensor, count: Tensor | None) -> Tensor:
    """x with zeros after the first ``count`` frames of each row: B C N M and B -> B C N M."""
    if count is None:
        return x
    real = functional.positions_from(0, x.shape[2], x)[None] < count[:, None]  # B N
    return x * real[:, None, :, None].to(x.dtype)
