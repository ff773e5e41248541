"""Heads of whole sequences: scores of classes, and vectors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

import specs.kinds.sequence_heads as spec
from specs.kinds.pooling import AttentionPooling as AttentionPoolingSpec
from zoo.components.linear import Linear
from zoo.components.patch_positions import patch_places
from zoo.components.pooling import AttentionPooling, TokenSequence, mean_from, mean_of_first_two, pool
from zoo.components.transforming_head import TransformingHead
from zoo.context import StackContext
from zoo.core.precision import wide
from zoo.registry import builds

Pool = Callable[[Tensor, TokenSequence], Tensor]
"""One vector per sequence: B T D -> B D."""


class SequenceHead(TransformingHead):
    """A head with one transformed vector per sequence: B T D -> B W, with W the ``width`` (default: D)."""

    def __init__(self, spec: spec.SequenceHead, context: StackContext, width: int | None = None) -> None:
        super().__init__(spec, context, width)
        self.transforms_tokens = spec.transform == "tokens"
        self.pooling: Pool
        if isinstance(spec.pooling, AttentionPoolingSpec):
            self.pooling = AttentionPooling(spec.pooling, context)
        elif spec.pooling == "patches":
            self.pooling = functools.partial(mean_from, start=patch_places(context)[0])
        elif spec.pooling == "first_two":
            self.pooling = mean_of_first_two
        else:
            self.pooling = functools.partial(pool, pooling=spec.pooling)

    def vector(self, x: Tensor, tokens: TokenSequence) -> Tensor:
        if self.transforms_tokens:
            return self.pooling(self.transform(x), tokens)
        return self.transform(self.pooling(x, tokens))


@builds(spec.Classification)
class Classification(SequenceHead):
    """logits: B labels, of one vector per sequence."""

    per_token: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, spec: spec.Classification, context: StackContext) -> None:
        width = spec.dense_width or context.d_model
        super().__init__(spec, context, width)
        self.dropout = nn.Dropout(spec.dropout)
        self.labels = Linear(width, spec.labels, bias=spec.bias)

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        return {"logits": self.labels(self.dropout(self.vector(x, tokens)))}


@builds(spec.DistilledClassification)
class DistilledClassification(nn.Module):
    """cls_logits and distillation_logits, of the first and the second vector, and their mean logits: B labels each."""

    per_token: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, spec: spec.DistilledClassification, context: StackContext) -> None:
        super().__init__()
        self.class_labels = Linear(context.d_model, spec.labels)
        self.distillation_labels = Linear(context.d_model, spec.labels)

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        class_logits, distillation_logits = self.class_labels(x[:, 0]), self.distillation_labels(x[:, 1])
        return {
            "logits": (class_logits + distillation_logits) / 2,
            "cls_logits": class_logits,
            "distillation_logits": distillation_logits,
        }


@builds(spec.Pooled)
class Pooled(SequenceHead):
    """last_hidden_state: B T D, and one vector per sequence, B W, under the name that the spec gives it."""

    per_token: ClassVar[frozenset[str]] = frozenset({"last_hidden_state"})

    def __init__(self, spec: spec.Pooled, context: StackContext) -> None:
        dense = spec.dense_width or context.d_model
        super().__init__(spec, context, dense)
        self.output, self.normalize = spec.output, spec.normalize
        width = spec.projection
        self.projection = nn.Identity() if width is None else Linear(dense, width, bias=False)

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        vector = self.projection(self.vector(x, tokens))  # B W
        if self.normalize:
            vector = F.normalize(wide(vector), dim=-1)
        return {"last_hidden_state": x, self.output: vector}

    def handed(self, outputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The vector goes on to the head in which two stacks meet."""
        return {"image": outputs[self.output]}
