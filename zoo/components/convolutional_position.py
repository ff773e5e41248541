"""Positions from a convolution of the tokens."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

import specs.kinds.convolutional_position as spec
from specs.kinds.norm import LayerNorm
from zoo.components.activation import activation
from zoo.components.convolution import Convolution1d, WeightNormConvolution
from zoo.components.position import Position
from zoo.context import BuildContext
from zoo.core.precision import wide
from zoo.functional import token_alignment
from zoo.registry import build_component, builds


class OfNeighbours(Position):
    """The base of positions by convolutions."""

    def embed_tokens(self, x: Tensor, positions: Tensor, mask: Tensor | None) -> Tensor:
        """As for the tokens without padding, which is moved before them."""
        alignment = token_alignment(mask, 1)
        if mask is None or alignment is None:
            return self.embed(x, positions)
        real = (mask != 0)[..., None].to(x.dtype)  # B T 1
        moved, moved_real = (F.embedding(alignment.columns, part.flatten(0, 1)) for part in (x * real, real))
        return F.embedding(alignment.tokens, self.embed_real(moved, positions, moved_real).flatten(0, 1))


@builds(spec.Convolutional)
class Convolutional(OfNeighbours):
    """activation(convolution(x)), as long as x."""

    def __init__(self, spec: spec.Convolutional, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.convolution = WeightNormConvolution(context.d_model, spec.kernel, spec.groups)
        self.activation = activation(spec.activation)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        y = self.convolution(x.transpose(1, 2))[
            :, :, : x.shape[1]
        ]  # B D T, without the last of an even kernel
        return x + wide(self.activation(y)).transpose(1, 2)


@builds(spec.StackedConvolutional)
class StackedConvolutional(OfNeighbours):
    """x + activation(norm(convolution(...))), layer by layer; vectors of padding are 0 in what each layer reads."""

    def __init__(self, spec: spec.StackedConvolutional, context: BuildContext) -> None:
        super().__init__(spec, context)
        width = context.d_model
        self.layers = nn.ModuleList(
            Convolution1d(width, width, spec.kernel, padding=spec.kernel // 2, groups=spec.groups)
            for _ in range(spec.layers)
        )
        self.norm = build_component(LayerNorm(weight=False, bias=False), context)
        self.activation = activation(spec.activation)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return self._added(x, None)

    def embed_real(self, x: Tensor, positions: Tensor, real: Tensor) -> Tensor:
        return self._added(x, real)

    def _added(self, x: Tensor, real: Tensor | None) -> Tensor:
        """x: B T D, real: B T 1, or None for all -> B T D."""
        y = x
        for layer in self.layers:
            y = y if real is None else y * real
            y = wide(layer(y.transpose(1, 2))).transpose(1, 2)[:, : x.shape[1]]  # B T D
            y = self.activation(self.norm(y))
        return x + y
