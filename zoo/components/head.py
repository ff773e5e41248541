"""Heads: from the last hidden state to the named outputs of a model.

Each takes x: B T D, and the tokens.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

import specs.kinds.head as spec
from specs.kinds import contrastive, token_heads
from specs.kinds.pooling import AttentionPooling as AttentionPoolingSpec
from zoo.components.activation import activation
from zoo.components.attention_pooling import AttentionPooling
from zoo.components.linear import Linear
from zoo.components.patch_positions import patch_places
from zoo.components.pooling import TokenSequence, mean_from, pool
from zoo.context import StackContext
from zoo.core.initialization import Distribution
from zoo.core.precision import wide
from zoo.core.sharding import VOCABULARY, Sharding
from zoo.registry import build_component, builds


def token_outputs(head: nn.Module, d_model: int) -> frozenset[str]:
    """The outputs of heads with one entry per token, B T ...; all others have one per sequence, B ...

    The class of a head states them as ``per_token``; those of other heads, such as a plugin's, are found by running the head.
    """
    names: frozenset[str] | None = vars(type(head)).get("per_token")
    return found_token_outputs(head, d_model) if names is None else names


def found_token_outputs(head: nn.Module, d_model: int) -> frozenset[str]:
    """The outputs that are longer for three tokens than for two.

    Operations on meta tensors import a part of PyTorch that takes a second to load.
    """
    parameter = next(head.parameters(), torch.empty(0))
    held = (*head.named_parameters(), *head.named_buffers())
    weights = {name: tensor.to("meta") for name, tensor in held}

    def sizes(length: int) -> dict[str, tuple[int, ...]]:
        x = torch.zeros(1, length, d_model, dtype=parameter.dtype, device="meta")
        ids = torch.zeros(1, length, dtype=torch.int64, device="meta")
        outputs = functional_call(head, weights, (x, TokenSequence(ids, None)))
        return {name: tuple(output.shape[1:2]) for name, output in outputs.items()}

    with torch.no_grad():
        two, three = sizes(2), sizes(3)
    return frozenset(name for name in two if two[name] != three[name])


def scored_width(spec: spec.VocabularyHead, context: StackContext) -> int:
    """The width of the scored vectors: the embedding's, or d_model."""
    assert context.token is not None
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


Pool = Callable[[Tensor, TokenSequence], Tensor]
"""One vector per sequence: B T D -> B D."""


class TransformingHead(nn.Module):
    """A head with norm(activation(dense(x))), each part optional: ... D -> ... W, with W the ``width`` (default: D)."""

    def __init__(
        self,
        spec: spec.TransformingHead | spec.MaskedScores,
        context: StackContext,
        width: int | None = None,
    ) -> None:
        super().__init__()
        width = width or context.d_model
        self.dense = (
            nn.Identity() if spec.activation is None else Linear(context.d_model, width, bias=spec.dense_bias)
        )
        self.activation = activation(spec.activation or "identity")
        self.norm = (
            nn.Identity()
            if spec.norm is None
            else build_component(spec.norm, replace(context, d_model=width))
        )

    def transform(self, x: Tensor) -> Tensor:
        return self.norm(self.activation(self.dense(x)))


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
        super().__init__(spec, context, scored_width(spec, context))
        self.vocabulary = vocabulary_scores(spec, context)

    def sharding(self) -> Sharding:
        """By the vocabulary."""
        return vocabulary_sharding(self.vocabulary)

    def scores(self, x: Tensor) -> Tensor:
        logits: Tensor = self.vocabulary(self.transform(x))
        return logits


@builds(spec.MaskedLanguageModeling)
class MaskedLanguageModeling(MaskedScores):
    """logits: B T vocabulary."""

    per_token: ClassVar[frozenset[str]] = frozenset({"logits"})

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        return {"logits": self.scores(x)}


@builds(spec.Pooler)
class Pooler(nn.Module):
    """last_hidden_state: B T D, and pooler_output: B D, of the first token."""

    per_token: ClassVar[frozenset[str]] = frozenset({"last_hidden_state"})

    def __init__(self, spec: spec.Pooler, context: StackContext) -> None:
        super().__init__()
        self.dense = Linear(context.d_model, context.d_model)
        self.activation = activation(spec.activation)

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        return {
            "last_hidden_state": x,
            "pooler_output": self.activation(self.dense(pool(x, tokens, "first"))),
        }


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


@builds(contrastive.Contrastive)
class Contrastive(nn.Module):
    """text_embeds: N W, image_embeds: M W, and their products times exp(scale), plus bias: M N, and N M."""

    def __init__(self, spec: contrastive.Contrastive, context: StackContext) -> None:
        super().__init__()
        self._initial = {"scale": spec.log_scale, "bias": spec.bias or 0.0}
        self.scale = nn.Parameter(torch.empty(1))
        self.bias = None if spec.bias is None else nn.Parameter(torch.empty(1))

    def initial(self, leaf: str) -> Distribution:
        """As the spec states them."""
        return Distribution(constant=self._initial[leaf])

    def forward(self, text: Tensor, image: Tensor) -> dict[str, Tensor]:
        logits = wide(image) @ wide(text).transpose(0, 1) * wide(self.scale).exp()  # M N
        if self.bias is not None:
            logits = logits + self.bias
        return {
            "logits_per_image": logits,
            "logits_per_text": logits.transpose(0, 1),
            "text_embeds": text,
            "image_embeds": image,
        }


@builds(token_heads.TokenClassification)
class TokenClassification(TransformingHead):
    """logits: B T labels."""

    per_token: ClassVar[frozenset[str]] = frozenset({"logits"})

    def __init__(self, spec: token_heads.TokenClassification, context: StackContext) -> None:
        super().__init__(spec, context)
        self.dropout = nn.Dropout(spec.dropout)
        self.labels = Linear(context.d_model, spec.labels, bias=spec.bias)

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        return {"logits": self.labels(self.dropout(self.transform(x)))}


@builds(token_heads.CTC)
class CTC(nn.Module):
    """logits: B T labels."""

    per_token: ClassVar[frozenset[str]] = frozenset({"logits"})

    def __init__(self, spec: token_heads.CTC, context: StackContext) -> None:
        super().__init__()
        self.dropout = nn.Dropout(spec.dropout)
        self.labels = Linear(context.d_model, spec.labels)

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        return {"logits": self.labels(self.dropout(x))}


@builds(token_heads.QuestionAnswering)
class QuestionAnswering(TransformingHead):
    """start_logits and end_logits: B T each."""

    per_token: ClassVar[frozenset[str]] = frozenset({"start_logits", "end_logits"})

    def __init__(self, spec: token_heads.QuestionAnswering, context: StackContext) -> None:
        super().__init__(spec, context)
        self.dropout = nn.Dropout(spec.dropout)
        self.span = Linear(context.d_model, 2, bias=spec.bias)

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        scores = self.span(self.dropout(self.transform(x)))  # B T 2
        return {"start_logits": scores[..., 0], "end_logits": scores[..., 1]}


@builds(token_heads.ReplacedTokenDetection)
class ReplacedTokenDetection(TransformingHead):
    """logits: B T."""

    per_token: ClassVar[frozenset[str]] = frozenset({"logits"})

    def __init__(self, spec: token_heads.ReplacedTokenDetection, context: StackContext) -> None:
        super().__init__(spec, context)
        self.score = Linear(context.d_model, 1, bias=spec.bias)

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        return {"logits": self.score(self.transform(x))[..., 0]}


@builds(spec.NoHead)
class NoHead(nn.Module):
    """last_hidden_state: B T D."""

    per_token: ClassVar[frozenset[str]] = frozenset({"last_hidden_state"})

    def __init__(self, spec: spec.NoHead, context: StackContext) -> None:
        super().__init__()

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        return {"last_hidden_state": x}
