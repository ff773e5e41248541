"""Heads that score each token."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

import specs.kinds.token_heads as spec
from zoo.components.linear import Linear
from zoo.components.pooling import TokenSequence, pool
from zoo.components.transforming_head import TransformingHead
from zoo.context import StackContext
from zoo.registry import builds


@builds(spec.TokenClassification)
class TokenClassification(TransformingHead):
    """logits: B T labels."""

    per_token: ClassVar[frozenset[str]] = frozenset({"logits"})

    def __init__(self, spec: spec.TokenClassification, context: StackContext) -> None:
        super().__init__(spec, context)
        self.dropout = nn.Dropout(spec.dropout)
        self.labels = Linear(context.d_model, spec.labels, bias=spec.bias)

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        return {"logits": self.labels(self.dropout(self.transform(x)))}


@builds(spec.CTC)
class CTC(nn.Module):
    """logits: B T labels."""

    per_token: ClassVar[frozenset[str]] = frozenset({"logits"})

    def __init__(self, spec: spec.CTC, context: StackContext) -> None:
        super().__init__()
        self.dropout = nn.Dropout(spec.dropout)
        self.labels = Linear(context.d_model, spec.labels)

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        return {"logits": self.labels(self.dropout(x))}


@builds(spec.QuestionAnswering)
class QuestionAnswering(TransformingHead):
    """start_logits and end_logits: B T each; relevance_logits: B."""

    per_token: ClassVar[frozenset[str]] = frozenset({"start_logits", "end_logits"})

    def __init__(self, spec: spec.QuestionAnswering, context: StackContext) -> None:
        super().__init__(spec, context)
        self.dropout = nn.Dropout(spec.dropout)
        self.span = Linear(context.d_model, 2, bias=spec.bias)
        self.relevance = Linear(context.d_model, 1, bias=spec.bias) if spec.relevance else None

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        x = self.dropout(self.transform(x))
        scores = self.span(x)  # B T 2
        answer = {"start_logits": scores[..., 0], "end_logits": scores[..., 1]}
        if self.relevance is None:
            return answer
        return {**answer, "relevance_logits": self.relevance(pool(x, tokens, pooling="first"))[..., 0]}


@builds(spec.ReplacedTokenDetection)
class ReplacedTokenDetection(TransformingHead):
    """logits: B T."""

    per_token: ClassVar[frozenset[str]] = frozenset({"logits"})

    def __init__(self, spec: spec.ReplacedTokenDetection, context: StackContext) -> None:
        super().__init__(spec, context)
        self.score = Linear(context.d_model, 1, bias=spec.bias)

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        return {"logits": self.score(self.transform(x))[..., 0]}
