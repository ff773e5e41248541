"""Pooling: one vector per sequence."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from specs.kinds.pooling import AttentionPooling as AttentionPoolingSpec
from specs.kinds.pooling import AtToken, TokenPooling
from zoo.components.attention_variations import projections
from zoo.components.linear import EmbeddingTable
from zoo.context import BuildContext
from zoo.core.graph_names import WORD_INPUTS
from zoo.core.precision import wide
from zoo.functional import attention_bias, last_real, positions_from
from zoo.registry import build_component


@dataclass(frozen=True)
class TokenSequence:
    """The tokens of the hidden states that a head receives.

    ids: B T, or None if the inputs are not tokens; mask: B T with 1 for real tokens, padding on either side, or None if all
    are real; words: the words and spans that they form, where a head reads them and the caller tells them.
    """

    ids: Tensor | None
    mask: Tensor | None
    words: Words | None = None


@dataclass(frozen=True)
class Words:
    """The words of token sequences, and spans of them, S in each row.

    numbers: B T, the number of the word that a token stands for, from 1, or 0; counts: B 1, the number of words; spans: B S 2, the
    first and the last word of each span, from 0; real: B S, true for spans that are in the text.
    """

    numbers: Tensor
    counts: Tensor
    spans: Tensor
    real: Tensor

    @property
    def inputs(self) -> dict[str, Tensor]:
        """The inputs of a model that are these words, by name."""
        return dict(zip(WORD_INPUTS, (self.numbers, self.counts, self.spans, self.real), strict=True))

    @classmethod
    def taken_from(cls, inputs: dict[str, Tensor | None]) -> Words | None:
        """The words in further inputs of a call, from which they are removed; None without words.

        Raises TypeError for some of the four without the others.
        """
        tensors = [tensor for name in WORD_INPUTS if (tensor := inputs.pop(name, None)) is not None]
        if 0 < len(tensors) < len(WORD_INPUTS):
            raise TypeError(f"{', '.join(WORD_INPUTS)} must be passed together")
        return cls(*tensors) if tensors else None


def pool(x: Tensor, tokens: TokenSequence, pooling: TokenPooling | AtToken) -> Tensor:
    """One vector per sequence, from its real tokens: x: B T D -> B D; zeros if all are padding.

    Pooling at the first token of a given id uses the first token if the sequence has none.
    """
    if isinstance(pooling, AtToken):
        assert tokens.ids is not None
        ids = tokens.ids if tokens.mask is None else tokens.ids * tokens.mask
        sought = ids.amax(1, keepdim=True) if pooling.token == "highest" else pooling.token
        matches = (ids == sought).to(torch.int64)  # B T
        if tokens.mask is not None:
            matches = matches * tokens.mask
        count = matches.cumsum(1)
        return torch.where(count[:, -1:] > 0, _mix(x, matches * (count == 1)), pool(x, tokens, "first"))
    return _unpadded(x, pooling) if tokens.mask is None else _padded(x, tokens.mask, pooling)


def mean_from(x: Tensor, tokens: TokenSequence, start: int) -> Tensor:
    """The mean over the vectors from one on, none of which is padding: x: B T D -> B D."""
    return x[:, start:].mean(1)


def mean_of_first_two(x: Tensor, tokens: TokenSequence) -> Tensor:
    """The mean of the first two vectors, none of which is padding: x: B T D -> B D."""
    return (x[:, 0] + x[:, 1]) / 2


def _unpadded(x: Tensor, pooling: TokenPooling) -> Tensor:
    match pooling:
        case "first" | "last":
            return x[:, 0 if pooling == "first" else -1]
        case "mean":
            return x.mean(1)
        case "max":
            return x.amax(1)
    ones = positions_from(1, x.shape[1], x).clamp(max=1)[None]  # 1 T
    return _padded(x, ones, pooling)


def _padded(x: Tensor, mask: Tensor, pooling: TokenPooling) -> Tensor:
    number = mask.cumsum(1)  # B T: 1 for the first real token
    count = number[:, -1:]
    match pooling:
        case "first":
            return _mix(x, mask * (number == 1))
        case "last":
            return last_real(x, mask)
        case "mean":
            return _mix(x, mask / count.clamp(min=1))
        case "mean_sqrt_length":
            return _mix(x, mask / count.clamp(min=1).sqrt())
        case "weighted_mean":
            weights = mask * number
            return _mix(x, weights / weights.sum(1, keepdim=True).clamp(min=1))
        case "max":
            real = torch.where(mask[..., None] > 0, x, torch.finfo(x.dtype).min)
            return torch.where(count > 0, real.amax(1), 0.0)


def _mix(x: Tensor, shares: Tensor) -> Tensor:
    """The weighted sum over tokens: B T D and B T -> B D."""
    return (shares.to(x.dtype)[:, None] @ x)[:, 0]  # (B 1 T @ B T D) -> B D


class AttentionPooling(nn.Module):
    """y + f(norm(y)), where y is the attention of a trained query to all tokens (Zhai et al., 2022, as in SigLIP).

    Reference: transformers' ``SiglipMultiheadAttentionPoolingHead``.
    """

    def __init__(self, spec: AttentionPoolingSpec, context: BuildContext) -> None:
        super().__init__()
        self.query = EmbeddingTable(1, context.d_model)
        self.attention = projections(spec.attention, context)  # type: ignore[arg-type]
        self.norm = build_component(spec.norm, context)
        self.feed_forward = build_component(spec.feed_forward, context)

    def forward(self, x: Tensor, tokens: TokenSequence) -> Tensor:
        """x: B T D -> B D."""
        query = wide(self.query.weight).expand(x.shape[0], 1, x.shape[2])  # B 1 D
        key, value = self.attention.keys_values(x)
        bias = attention_bias(tokens.mask, None, None, None, x, causal=False)
        y = self.attention.attend(query, self.attention.queries(query), key, value, bias)  # B 1 D
        return (y + self.feed_forward(self.norm(y)))[:, 0]
