"""Embeddings of tokens for single layers.

Shapes: batch B, tokens T, width D, width of the embedding P.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

import specs.kinds.per_layer_embedding as spec
from zoo.components.activation import activation
from zoo.components.linear import EmbeddingTable, Linear
from zoo.context import BuildContext
from zoo.core.precision import wide
from zoo.core.sharding import VOCABULARY, Sharding
from zoo.registry import build_component


class PerLayerEmbedding(nn.Module):
    """norm(output(activation(gate(x)) * e)), with e = (sqrt(P) * table(tokens) + projected) / sqrt(2).

    projected = projected_norm(projection(embedded) / sqrt(D)), with a norm that all layers share.
    """

    component_kind = "per_layer_embedding"

    def __init__(self, spec: spec.PerLayerEmbedding, context: BuildContext) -> None:
        super().__init__()
        assert context.vocab_size is not None
        width = context.d_model
        self.width, self.d_model = spec.width, width
        self.covers_vocabulary = spec.vocab_size is None or spec.vocab_size >= context.vocab_size
        self.table = EmbeddingTable(spec.vocab_size or context.vocab_size, spec.width)
        self.projection = Linear(width, spec.width, bias=False)
        self.projected_norm = context.shared(
            f"norm of projected tokens, {spec.width} {spec.norm!r}",
            lambda: build_component(spec.norm, replace(context, d_model=self.width)),
        )
        self.gate = Linear(width, spec.width, bias=False)
        self.activation = activation(spec.activation)
        self.output = Linear(spec.width, width, bias=False)
        self.norm = build_component(spec.norm, context)

    def sharding(self) -> Sharding:
        """The table by tokens; every process has the rest, as the norm reads whole vectors."""
        return Sharding({"table": VOCABULARY}, {"vocab_size": self.table.num_embeddings})

    def forward(self, x: Tensor, tokens: Tensor, embedded: Tensor) -> Tensor:
        """x: B T D, tokens: B T, embedded: the input of the first layer, B T D -> B T D."""
        projected = self.projected_norm(self.projection(embedded) * self.d_model**-0.5)  # B T P
        if not self.covers_vocabulary:
            rows = self.table.num_embeddings
            tokens = torch.where(tokens < rows, tokens, 0)
        own = wide(self.table(tokens)) * self.width**0.5  # B T P
        gated = self.activation(self.gate(x)) * ((projected + own) * 0.5**0.5)  # B T P
        return self.norm(self.output(gated))
