"""Heads: from the last hidden state to the named outputs of a model.

Each takes x: B T D and mask: B T with 1 for real tokens, or None where all are.
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor, nn

import specs.head as spec
from zoo.components.activation import activation
from zoo.components.linear import Linear
from zoo.components.pooling import pool
from zoo.context import BuildContext
from zoo.registry import build_component, builds


def vocabulary_scores(spec: spec.VocabularyHead, width: int, context: BuildContext) -> Linear:
    """The matrix from ``width`` to the vocabulary; with tied embeddings it is the token table itself."""
    token = context.token
    assert token is not None
    scores = Linear(width, token.num_embeddings, bias=spec.bias)
    if spec.tie_embeddings:
        scores.weight = token.weight
    return scores


@builds(spec.LanguageModeling)
class LanguageModeling(nn.Module):
    """logits: B T vocabulary."""

    def __init__(self, spec: spec.LanguageModeling, context: BuildContext) -> None:
        super().__init__()
        self.scale = context.d_model**-0.5 if spec.scale == "inverse_sqrt_d_model" else spec.scale
        self.vocabulary = vocabulary_scores(spec, context.d_model, context)

    def forward(self, x: Tensor, mask: Tensor | None) -> dict[str, Tensor]:
        if self.scale is not None:
            x = x * self.scale
        return {"logits": self.vocabulary(x)}


@builds(spec.MaskedLanguageModeling)
class MaskedLanguageModeling(nn.Module):
    """logits: B T vocabulary, of norm(activation(dense(x)))."""

    def __init__(self, spec: spec.MaskedLanguageModeling, context: BuildContext) -> None:
        super().__init__()
        assert context.token is not None
        width = context.token.embedding_dim
        self.dense = Linear(context.d_model, width)
        self.activation = activation(spec.activation)
        self.norm = build_component(spec.norm, replace(context, d_model=width))
        self.vocabulary = vocabulary_scores(spec, width, context)

    def forward(self, x: Tensor, mask: Tensor | None) -> dict[str, Tensor]:
        return {"logits": self.vocabulary(self.norm(self.activation(self.dense(x))))}


@builds(spec.Pooler)
class Pooler(nn.Module):
    """last_hidden_state: B T D, and pooler_output: B D, of the first token."""

    def __init__(self, spec: spec.Pooler, context: BuildContext) -> None:
        super().__init__()
        self.dense = Linear(context.d_model, context.d_model)
        self.activation = activation(spec.activation)

    def forward(self, x: Tensor, mask: Tensor | None) -> dict[str, Tensor]:
        return {"last_hidden_state": x, "pooler_output": self.activation(self.dense(pool(x, mask, "first")))}


@builds(spec.Classification)
class Classification(nn.Module):
    """logits: B labels, of one vector for the sequence."""

    def __init__(self, spec: spec.Classification, context: BuildContext) -> None:
        super().__init__()
        self.pooling = spec.pooling
        self.dense = None if spec.activation is None else Linear(context.d_model, context.d_model)
        self.activation = activation(spec.activation or "identity")
        self.dropout = nn.Dropout(spec.dropout)
        self.labels = Linear(context.d_model, spec.labels, bias=spec.bias)

    def forward(self, x: Tensor, mask: Tensor | None) -> dict[str, Tensor]:
        x = pool(x, mask, self.pooling)  # B D
        if self.dense is not None:
            x = self.activation(self.dense(x))
        return {"logits": self.labels(self.dropout(x))}


@builds(spec.NoHead)
class NoHead(nn.Module):
    """last_hidden_state: B T D."""

    def __init__(self, spec: spec.NoHead, context: BuildContext) -> None:
        super().__init__()

    def forward(self, x: Tensor, mask: Tensor | None) -> dict[str, Tensor]:
        return {"last_hidden_state": x}
