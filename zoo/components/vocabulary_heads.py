"""Heads that score every token of the vocabulary."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

import specs.kinds.vocabulary_heads as spec
from specs.kinds.vocabulary_heads import MaskedScores as MaskedScoresSpec
from zoo.components.linear import Linear
from zoo.components.pooling import TokenSequence
from zoo.components.transforming_head import TransformingHead
from zoo.context import StackContext
from zoo.core.precision import wide
from zoo.core.sharding import VOCABULARY, Sharding
from zoo.registry import builds


def scored_width(spec: spec.VocabularyHead, context: StackContext) -> int:
    """The width of the scored vectors: the head's own, the embedding's, or d_model."""
    assert context.token is not None
    if isinstance(spec, MaskedScoresSpec) and spec.dense_width is not None and not spec.tie_embeddings:
        return spec.dense_width
    return context.token.embedding_dim if spec.scores_embeddings else context.d_model


def vocabulary_scores(spec: spec.VocabularyHead, context: StackContext) -> Linear:
    """The projection to the vocabulary; with tied embeddings it is the token table itself."""
    token = context.token
    assert token is not None
    scores = Linear(scored_width(spec, context), token.num_embeddings, bias=spec.bias is True)
    if spec.tie_embeddings:
        scores.weight = token.weight
    return scores


def vocabulary_sharding(vocabulary: Linear) -> Sharding:
    """By the vocabulary, as the token table is."""
    return Sharding({"vocabulary": VOCABULARY}, {"vocab_size": vocabulary.out_features})


@builds(spec.LanguageModeling)
class LanguageModeling(TransformingHead):
    """logits: B T vocabulary; a constant ``bias`` is a buffer of 1 x vocabulary."""

    per_token: ClassVar[frozenset[str]] = frozenset({"logits"})
    bias: Tensor | None

    def __init__(self, spec: spec.LanguageModeling, context: StackContext) -> None:
        super().__init__(spec, context)
        self.scale = context.d_model**-0.5 if spec.scale == "inverse_sqrt_d_model" else spec.scale
        self.projection = (
            Linear(context.d_model, scored_width(spec, context), bias=False)
            if spec.projection
            else nn.Identity()
        )
        self.vocabulary = vocabulary_scores(spec, context)
        fixed = torch.empty(1, self.vocabulary.out_features) if spec.bias == "fixed" else None
        self.register_buffer("bias", fixed)
        self.softcap = spec.softcap

    def fixed(self, leaf: str) -> Tensor | None:
        """The bias if a checkpoint does not store it."""
        return torch.zeros(1, self.vocabulary.out_features, device="cpu") if leaf == "bias" else None

    def sharding(self) -> Sharding:
        """By the vocabulary."""
        return vocabulary_sharding(self.vocabulary)

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        x = self.transform(x)
        if self.scale is not None:
            x = x * self.scale
        logits = wide(self.vocabulary(self.projection(x)))
        if self.bias is not None:
            logits = logits + self.bias
        if self.softcap is not None:
            logits = self.softcap * torch.tanh(logits / self.softcap)
        return {"logits": logits}


class MaskedScores(TransformingHead):
    """A head with scores of the vocabulary for each token: B T D -> B T vocabulary."""

    def __init__(self, spec: spec.MaskedScores, context: StackContext) -> None:
        width = scored_width(spec, context)
        super().__init__(spec, context, spec.dense_width or width)
        self.vocabulary = vocabulary_scores(spec, context)
        self.rest: Linear | None = None
        if spec.dense_width is not None and spec.dense_width > width:
            self.rest = Linear(spec.dense_width - width, self.vocabulary.out_features, bias=False)

    def sharding(self) -> Sharding:
        """By the vocabulary."""
        return vocabulary_sharding(self.vocabulary)

    def scores(self, x: Tensor) -> Tensor:
        x = self.transform(x)
        if self.rest is None:
            logits: Tensor = self.vocabulary(x)
            return logits
        first, others = x.split([self.vocabulary.in_features, self.rest.in_features], -1)
        scores: Tensor = self.vocabulary(first) + self.rest(others)
        return scores


@builds(spec.MaskedLanguageModeling)
class MaskedLanguageModeling(MaskedScores):
    """logits: B T vocabulary."""

    per_token: ClassVar[frozenset[str]] = frozenset({"logits"})

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        return {"logits": self.scores(x)}
