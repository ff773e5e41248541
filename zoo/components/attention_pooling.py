"""Pooling by attention: one vector per sequence.

Shapes: batch B, tokens T, width D.
"""

from __future__ import annotations

from torch import Tensor, nn

import specs.kinds.pooling as spec
from zoo import functional
from zoo.components.attention_variations import projections
from zoo.components.linear import EmbeddingTable
from zoo.components.pooling import TokenSequence
from zoo.context import BuildContext
from zoo.core.precision import wide
from zoo.registry import build_component


class AttentionPooling(nn.Module):
    """y + f(norm(y)), where y is the attention of a trained query to all tokens (Zhai et al., 2022, as in SigLIP).

    Reference: transformers' ``SiglipMultiheadAttentionPoolingHead``.
    """

    def __init__(self, spec: spec.AttentionPooling, context: BuildContext) -> None:
        super().__init__()
        self.query = EmbeddingTable(1, context.d_model)
        self.attention = projections(spec.attention, context)  # type: ignore[arg-type]
        self.norm = build_component(spec.norm, context)
        self.feed_forward = build_component(spec.feed_forward, context)

    def forward(self, x: Tensor, tokens: TokenSequence) -> Tensor:
        """x: B T D -> B D."""
        query = wide(self.query.weight).expand(x.shape[0], 1, x.shape[2])  # B 1 D
        key, value = self.attention.keys_values(x)
        bias = functional.attention_bias(tokens.mask, None, None, None, x, causal=False)
        y = self.attention.attend(query, self.attention.queries(query), key, value, bias)  # B 1 D
        return (y + self.feed_forward(self.norm(y)))[:, 0]
