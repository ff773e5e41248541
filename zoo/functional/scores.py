"""Attention and the biases of its scores.

Shapes: batch B, query length T, key length S, heads H, key-value heads G, head width K.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo.functional.decorator import semantic_op
from zoo.functional.tensors import constant, relative_positions


@semantic_op
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    *,
    scale: float,
    dropout: float = 0.0,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """softmax(scale * query @ key^T + bias) @ value (Vaswani et al., 2017).

    query: B H T K, key and value: B G S K with G dividing H, bias: broadcast to B H T S -> B H T K.
    If the bias forbids a query every key, the result is the mean of all values, never NaN.

    softcap: scores become softcap * tanh(scores / softcap) before the bias is added (Gemma 2).
    sinks: H, the score of one extra key without a value in each softmax (GPT-OSS); it takes all weight where the bias
    forbids every key.
    """
    if softcap is None and sinks is None:
        grouped = key.shape[1] != query.shape[1]
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask=bias, dropout_p=dropout, scale=scale, enable_gqa=grouped
        )
    weights = attention_weights(query, key, bias, scale=scale, softcap=softcap, sinks=sinks)
    weights = weights if sinks is None else weights[..., :-1]  # B H T S
    if dropout:
        weights = F.dropout(weights, dropout)
    return mixed_values(weights, value)


def mixed_values(weights: Tensor, value: Tensor) -> Tensor:
    """The values of shared heads, weighted: B H T S and B G S K -> B H T K."""
    groups = value.shape[1]
    mixed = weights.unflatten(1, (groups, weights.shape[1] // groups)) @ value[:, :, None]  # B G H/G T K
    return mixed.flatten(1, 2)


def attention_weights(
    query: Tensor,
    key: Tensor,
    bias: Tensor | None,
    *,
    scale: float,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """softmax(scale * query @ key^T + bias), as in :func:`attention` -> B H T S, or with sinks B H T (S + 1), the sinks last."""
    groups = key.shape[1]
    queries = (query * scale).unflatten(1, (groups, query.shape[1] // groups))  # B G H/G T K
    scores = (queries @ key[:, :, None].transpose(-1, -2)).flatten(1, 2)  # B H T S
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if bias is not None:
        scores = scores + bias
    if sinks is not None:
        sink = sinks[:, None, None].expand(scores.shape[0], -1, scores.shape[2], 1)  # B H T 1
        scores = torch.cat((scores, sink), -1)
    return F.softmax(scores, -1)


@semantic_op
def attention_bias(
    key_mask: Tensor | None,
    position_bias: Tensor | None,
    queries: Tensor | None,
    keys: Tensor | None,
    like: Tensor,
    *,
    causal: bool,
    window: int | None = None,
    chunk: int | None = None,
    last: Tensor | None = None,
    unlimited: Tensor | None = None,
    groups: Tensor | None = None,
) -> Tensor | None:
    """The additive attention bias of a stack: position_bias where a query may see a key, else a very low number.

    key_mask: B S with 1 for real tokens, position_bias: (B or 1) H (T or 1) S, queries and keys: their positions, (B or 1) T
    and (B or 1) S, needed only for a causal or windowed bias -> (B or 1) (H or 1) T S in the dtype of ``like``, or None for
    no bias.  window: a causal query sees the last ``window`` keys, itself included; other queries see half as many on
    either side.  chunk: a causal query sees keys of its own chunk alone, where these divide positions from 0 on.  last: the position of the last key that each causal query sees, (B or 1) T, where that is not its own.
    unlimited: the queries that a window does not limit, (B or 1) T, if any.
    groups: the number of each token's group, B T, where tokens see only those of their own, as the patches of one image.
    """
    allowed = None
    if causal or window is not None:
        assert queries is not None
        assert keys is not None
        query, key = queries[:, None, :, None], keys[:, None, None, :]  # (B or 1) 1 T 1, (B or 1) 1 1 S
        first = None if window is None else query - (window - 1 if causal else window // 2)
        until = query if causal else query + window // 2  # type: ignore[operator]
        allowed = key <= (until if last is None else last[:, None, :, None])  # (B or 1) 1 T S
        near = None if first is None else key >= first
        near = near if chunk is None else key // chunk == query // chunk
        if near is not None:
            near = near if unlimited is None else near | unlimited[:, None, :, None]
            allowed = allowed & near
    if groups is not None:
        together = groups[:, None, :, None] == groups[:, None, None, :]  # B 1 T T
        allowed = together if allowed is None else together & allowed
    if key_mask is not None:
        real = key_mask[:, None, None, :] != 0  # B 1 1 S
        allowed = real if allowed is None else real & allowed  # B 1 T S
    if allowed is None:
        return position_bias
    seen = constant((0.0,), like).to(like.dtype) if position_bias is None else position_bias
    return torch.where(allowed, seen, forbidden(like.dtype))


def forbidden(dtype: torch.dtype) -> float:
    """A score whose softmax weight is 0: half the lowest number, as some kernels treat the lowest itself as NaN."""
    return torch.finfo(dtype).min / 2


@semantic_op
def alibi_bias(
    slopes: tuple[float, ...], queries: Tensor, keys: Tensor, like: Tensor, *, scale: float
) -> Tensor:
    """scale * slope * -distance for each head (Press et al., 2022), in the dtype of ``like``.

    queries and keys: their positions, (B or 1) T and (B or 1) S -> (B or 1) H T S.
    """
    distances = relative_positions(queries, keys).abs()[:, None].to(torch.float32)  # (B or 1) 1 T S
    penalties = constant(slopes, like)[:, None, None] * -distances  # (B or 1) H T S
    return (penalties if scale == 1.0 else penalties * scale).to(like.dtype)
