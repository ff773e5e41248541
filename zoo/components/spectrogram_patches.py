"""Embeddings of spectrograms by patches."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import specs.kinds.spectrogram_patches as spec
from zoo.components.convolution import Convolution2d
from zoo.components.embedding import DenseEmbedding
from zoo.components.linear import EmbeddingTable
from zoo.context import StackContext
from zoo.core.precision import wide
from zoo.registry import builds


@builds(spec.SpectrogramPatches)
class SpectrogramPatches(DenseEmbedding):
    """Class token, distillation token and the projected patches, plus position; the projection is stored as a convolution."""

    def __init__(self, spec: spec.SpectrogramPatches, context: StackContext) -> None:
        super().__init__(spec, context)
        self.length = spec.fixed_length
        strides = (spec.bin_stride, spec.frame_stride)
        self.patch = Convolution2d(1, context.d_model, spec.patch_size, stride=strides)
        self.class_token, self.distillation_token = (EmbeddingTable(1, context.d_model) for _ in range(2))
        self.dropout = nn.Dropout(spec.dropout)

    def forward(
        self, input_values: Tensor, positions: Tensor, token_type_ids: None = None, mask: None = None
    ) -> Tensor:
        """input_values: B frames mel_bins -> B T D."""
        x = wide(self.patch(input_values.transpose(1, 2)[:, None])).flatten(2).transpose(1, 2)  # B patches D
        first = [
            wide(token.weight).expand(x.shape[0], 1, x.shape[2])  # B 1 D
            for token in (self.class_token, self.distillation_token)
        ]
        return self.dropout(self.position.embed(torch.cat((*first, x), 1), positions))
