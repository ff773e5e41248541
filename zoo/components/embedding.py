"""Embeddings: from the inputs of a model to its residual stream.

Shapes: batch B, vectors T, width D, width of the token table W.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

import specs.kinds.embedding as spec
from specs.kinds.position import NoPosition
from zoo import functional
from zoo.components.activation import activation
from zoo.components.convolution import Convolution1d, Convolution2d
from zoo.components.linear import EmbeddingTable, Linear
from zoo.components.position import Position
from zoo.context import StackContext
from zoo.core.precision import wide
from zoo.core.sharding import VOCABULARY, Sharding
from zoo.registry import build_component, builds


class Embedding(nn.Module):
    """The base of embeddings.  ``token`` is the token table, if the inputs are tokens.

    ``forward`` takes the inputs, the positions of the embedded vectors, token types, and the caller's mask.
    """

    token: EmbeddingTable | None
    parameter_role = "embedding"

    def __init__(self, spec: spec.EmbeddingKind, context: StackContext) -> None:
        super().__init__()
        self.token = None
        self.position: Position = build_component(  # type: ignore[assignment]
            context.position_kind if context.position_kind.embedded else NoPosition(),
            replace(
                context,
                d_model=spec.position_width(context.d_model),
                context_length=spec.position_count(context.context_length),
            ),
        )

    def mask_and_positions(self, inputs: Tensor, mask: Tensor | None) -> tuple[Tensor | None, Tensor]:
        """The mask of the embedded vectors, B T with 1 for real ones or None for all, and their positions.

        ``mask`` is the caller's, or None; positions are B T, or 1 T if all rows are alike.
        """
        raise NotImplementedError


@builds(spec.Tokens)
class Tokens(Embedding):
    """projection(norm(token * scale + token type + position)), each part optional.

    The token table may be shared with another embedding: ``context.token``.
    """

    token: EmbeddingTable

    def __init__(self, spec: spec.Tokens, context: StackContext) -> None:
        super().__init__(spec, context)
        assert context.vocab_size is not None
        width, inner = spec.table_width(context.d_model), spec.position_width(context.d_model)
        self.token = context.token or EmbeddingTable(context.vocab_size, width)  # type: ignore[assignment]
        self.token_type = EmbeddingTable(spec.token_types, inner) if spec.token_types else None
        self.scale = context.d_model**0.5 if spec.scale == "sqrt_d_model" else spec.scale
        self.norm = (
            nn.Identity()
            if spec.norm is None
            else build_component(spec.norm, replace(context, d_model=inner))
        )
        self.dropout = nn.Dropout(spec.dropout)
        self.projection: nn.Module = nn.Identity()
        if spec.projection is not None or width != context.d_model:
            bias = spec.projection is None or spec.projection.bias
            self.projection = Linear(width, context.d_model, bias=bias)
        self.projects_first = spec.projection is not None and spec.projection.place == "first"

    def sharding(self) -> Sharding:
        """By the vocabulary."""
        return Sharding({"token": VOCABULARY}, {"vocab_size": self.token.num_embeddings})

    def mask_and_positions(self, inputs: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        mask = torch.ones_like(inputs) if mask is None else mask
        return mask, functional.token_positions(mask, inputs.shape[1])

    def forward(
        self,
        input_ids: Tensor,
        positions: Tensor,
        token_type_ids: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """input_ids, positions and token_type_ids (default: all 0): B T -> B T D."""
        x = wide(self.token(input_ids))  # B T W
        if self.scale is not None:
            x = x * self.scale
        if self.projects_first:
            x = self.projection(x)  # B T D
        if self.token_type is not None:
            x = x + (self.token_type.weight[0] if token_type_ids is None else self.token_type(token_type_ids))
        x = self.dropout(self.norm(self.position.embed(x, positions)))
        return x if self.projects_first else self.projection(x)  # B T D


class DenseEmbedding(Embedding):
    """An embedding of images or audio, which are never padded, as T vectors."""

    length: int

    def mask_and_positions(self, inputs: Tensor, mask: Tensor | None) -> tuple[None, Tensor]:
        """Raises :class:`TypeError` for a mask."""
        if mask is not None:
            raise TypeError("images and audio are never padded: this model takes no attention_mask")
        return None, functional.positions_from(0, self.length, inputs)[None]  # 1 T


@builds(spec.Patches)
class Patches(DenseEmbedding):
    """Class token, distillation token and the projected patches, plus position, with registers before the patches; the
    projection is stored as a convolution."""

    def __init__(self, spec: spec.Patches, context: StackContext) -> None:
        super().__init__(spec, context)
        size, width = spec.patch_size, context.d_model
        self.length = spec.fixed_length
        self.patch = Convolution2d(spec.channels, width, size, stride=size, bias=spec.bias)
        self.class_token = EmbeddingTable(1, width) if spec.class_token else None
        self.distillation_token = EmbeddingTable(1, width) if spec.distillation_token else None
        self.register = EmbeddingTable(spec.registers, width) if spec.registers else None
        self.norm = nn.Identity() if spec.norm is None else build_component(spec.norm, context)
        self.dropout = nn.Dropout(spec.dropout)

    def forward(
        self, pixel_values: Tensor, positions: Tensor, token_type_ids: None = None, mask: None = None
    ) -> Tensor:
        """pixel_values: B C height width -> B T D."""
        x = wide(self.patch(pixel_values)).flatten(2).transpose(1, 2)  # B patches D
        first = [
            wide(token.weight).expand(x.shape[0], 1, x.shape[2])  # B 1 D
            for token in (self.class_token, self.distillation_token)
            if token is not None
        ]
        x = torch.cat((*first, x), 1) if first else x  # B T D
        if self.register is None:
            return self.dropout(self.norm(self.position.embed(x, positions)))
        count = self.register.num_embeddings
        x = self.position.embed(x, positions[:, : self.length - count])
        registers = wide(self.register.weight).expand(x.shape[0], count, x.shape[2])  # B registers D
        parts = (x[:, : len(first)], registers, x[:, len(first) :]) if first else (registers, x)
        return self.dropout(self.norm(torch.cat(parts, 1)))  # B T D


@builds(spec.Spectrogram)
class Spectrogram(DenseEmbedding):
    """activation(second(activation(first(x)))) + position; both are convolutions over time."""

    def __init__(self, spec: spec.Spectrogram, context: StackContext) -> None:
        super().__init__(spec, context)
        assert context.context_length is not None
        width, half = context.d_model, spec.kernel // 2
        self.length = context.context_length
        self.first = Convolution1d(spec.mel_bins, width, spec.kernel, padding=half)
        self.second = Convolution1d(width, width, spec.kernel, stride=spec.stride, padding=half)
        self.activation = activation(spec.activation)
        self.dropout = nn.Dropout(spec.dropout)

    def forward(
        self, input_features: Tensor, positions: Tensor, token_type_ids: None = None, mask: None = None
    ) -> Tensor:
        """input_features: B mel_bins (stride T) -> B T D."""
        x = self.activation(self.first(input_features))  # B D (stride T)
        x = wide(self.activation(self.second(x))).transpose(1, 2)  # B T D
        return self.dropout(self.position.embed(x, positions))
