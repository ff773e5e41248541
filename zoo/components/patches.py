"""Embeddings of images by patches."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import specs.kinds.patches as spec
from zoo.components.convolution import Convolution2d
from zoo.components.embedding import DenseEmbedding
from zoo.components.linear import EmbeddingTable
from zoo.context import StackContext
from zoo.core.precision import wide
from zoo.registry import build_component, builds


@builds(spec.Patches)
class Patches(DenseEmbedding):
    """Class token, distillation token and the projected patches, plus position, with registers before the patches; the
    projection is stored as a convolution."""

    def __init__(self, spec: spec.Patches, context: StackContext) -> None:
        super().__init__(spec, context)
        size, width = spec.patch_size, context.d_model
        self.length, self.places_all = spec.fixed_length, spec.placed == "all"
        self.patches = spec.side**2
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
        if not self.places_all:
            x = self.position.embed(x, positions[:, : self.patches])
        first = [
            wide(token.weight).expand(x.shape[0], 1, x.shape[2])  # B 1 D
            for token in (self.class_token, self.distillation_token)
            if token is not None
        ]
        x = torch.cat((*first, x), 1) if first else x  # B T D
        count = 0 if self.register is None else self.register.num_embeddings
        if self.places_all:
            x = self.position.embed(x, positions[:, : self.length - count] if count else positions)
        if self.register is None:
            return self.dropout(self.norm(x))
        registers = wide(self.register.weight).expand(x.shape[0], count, x.shape[2])  # B registers D
        parts = (x[:, : len(first)], registers, x[:, len(first) :]) if first else (registers, x)
        return self.dropout(self.norm(torch.cat(parts, 1)))  # B T D
