"""Embeddings of sound by spectrograms."""

from __future__ import annotations

from torch import Tensor, nn

import specs.kinds.spectrogram as spec
from zoo.components.activation import activation
from zoo.components.convolution import Convolution1d
from zoo.components.embedding import DenseEmbedding
from zoo.context import StackContext
from zoo.core.precision import wide
from zoo.registry import builds


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
