"""Heads for retrieval: vectors of tokens, weights of tokens and of terms of the vocabulary, and several heads at once."""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import specs.kinds.retrieval as spec
from specs.base.errors import UserError
from zoo.components.linear import Linear
from zoo.components.pooling import TokenSequence
from zoo.components.transforming_head import TransformingHead
from zoo.components.vocabulary_heads import MaskedScores
from zoo.context import StackContext
from zoo.core.precision import wide
from zoo.registry import build_component, builds


@builds(spec.MultiVector)
class MultiVector(TransformingHead):
    """token_embeddings: B T W, padding included."""

    per_token: ClassVar[frozenset[str]] = frozenset({spec.TOKEN_VECTORS})

    def __init__(self, spec: spec.MultiVector, context: StackContext) -> None:
        dense, width = spec.dense_width or context.d_model, spec.projection
        super().__init__(spec, context, dense)
        self.projection = nn.Identity() if width is None else Linear(dense, width, bias=spec.projection_bias)
        self.normalize = spec.normalize

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        vectors = self.projection(self.transform(x))  # B T W
        if self.normalize:
            vectors = F.normalize(wide(vectors), dim=-1)
        return {spec.TOKEN_VECTORS: vectors}


@builds(spec.Sparse)
class Sparse(MaskedScores):
    """sentence_embedding: B vocabulary, each entry 0 or more."""

    per_token: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, spec: spec.Sparse, context: StackContext) -> None:
        super().__init__(spec, context)
        self.pooling, self.logarithms = spec.pooling, spec.logarithms

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        weights = wide(self.scores(x)).clamp(min=0)  # B T vocabulary
        for _ in range(self.logarithms):
            weights = torch.log(1 + weights)
        if tokens.mask is not None:
            weights = weights * tokens.mask[..., None]
        return {spec.TERM_WEIGHTS: weights.amax(1) if self.pooling == "max" else weights.sum(1)}


@builds(spec.TokenWeights)
class TokenWeights(nn.Module):
    """token_weights: B T, padding included."""

    per_token: ClassVar[frozenset[str]] = frozenset({spec.TOKEN_WEIGHTS})

    def __init__(self, spec: spec.TokenWeights, context: StackContext) -> None:
        super().__init__()
        self.score = Linear(context.d_model, 1)

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        return {spec.TOKEN_WEIGHTS: self.score(x)[..., 0].clamp(min=0)}


@builds(spec.Several)
class Several(nn.Module):
    """The outputs of all heads, by name.  Raises :class:`UserError` for a name that PyTorch's modules have themselves, such as train."""

    def __init__(self, spec: spec.Several, context: StackContext) -> None:
        super().__init__()
        taken = next((name for name in spec.heads if hasattr(nn.ModuleDict(), name)), None)
        if taken is not None:
            raise UserError(
                f"head.heads.{taken}: must not be the name of an attribute of PyTorch's modules\n  value: {taken!r}\n"
                "  Rename it, as in dense or sparse."
            )
        self.heads = nn.ModuleDict(
            {name: build_component(head, context) for name, head in spec.heads.items()}
        )

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        outputs: dict[str, Tensor] = {}
        for head in self.heads.values():
            outputs |= head(x, tokens)
        return outputs
