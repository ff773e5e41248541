"""Embeddings of tokens for single layers.

Shapes: batch B, tokens T, width D, width of the embedding P.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

import specs.kinds.per_layer_embedding as spec
from zoo.components.activation import activation
from zoo.components.block import Branch, LayerCall
from zoo.components.linear import EmbeddingTable, Linear
from zoo.context import LayerContext
from zoo.core.precision import wide
from zoo.core.sharding import VOCABULARY, Sharding
from zoo.registry import build_component


def _read_stream(x: Tensor) -> Tensor:
    """The stream that gates an embedding: B T D -> B T D."""
    return x


def _join_stream(x: Tensor, embedding: Tensor) -> Tensor:
    """The stream with an embedding: B T D twice -> B T D."""
    return x + embedding


class PerLayerEmbedding(nn.Module):
    """norm(output(activation(gate(x)) * e)), with e = (sqrt(P) * table(tokens) + projected) / sqrt(2).

    projected = projected_norm(projection(embedded) / sqrt(D)), with a norm that all layers share.  ``read`` and ``join`` say which
    stream gates the embedding, and which it is added to, where there are several.
    """

    component_kind, parameter_role = "per_layer_embedding", "embedding"

    def __init__(self, spec: spec.PerLayerEmbedding, dropout: float, context: LayerContext) -> None:
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
        self.dropout = nn.Dropout(dropout)
        self.read, self.join = _read_stream, _join_stream

    def sharding(self) -> Sharding:
        """The table by tokens; every process has the rest, as the norm reads whole vectors."""
        return Sharding({"table": VOCABULARY}, {"vocab_size": self.table.num_embeddings})

    def around(self, layer: Branch, x: Tensor, call: LayerCall) -> Tensor:
        """The output of a layer and this embedding."""
        x, context = layer(x, call), call.context
        assert context.ids is not None
        return self.join(x, self.dropout(self(self.read(x), context.ids, context.embedded)))

    def forward(self, x: Tensor, tokens: Tensor, embedded: Tensor) -> Tensor:
        """x: B T D, tokens: B T, embedded: the input of the first layer, B T D -> B T D."""
        projected = self.projected_norm(self.projection(embedded) * self.d_model**-0.5)  # B T P
        if not self.covers_vocabulary:
            rows = self.table.num_embeddings
            tokens = torch.where(tokens < rows, tokens, 0)
        own = wide(self.table(tokens)) * self.width**0.5  # B T P
        gated = self.activation(self.gate(x)) * ((projected + own) * 0.5**0.5)  # B T P
        return self.norm(self.output(gated))
