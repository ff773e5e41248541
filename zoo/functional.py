"""Functions that an exporter may want to see whole.

Each runs as ordinary PyTorch.  Under a tracer it is one call, which the tracer keeps whole where its target
has an operation for it, and otherwise follows into the body: there is no second description of the maths.

Shapes: batch B, query length T, key length S, heads H, key-value heads G, head width K, rotated pairs R.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import handle_torch_function, has_torch_function

Function = TypeVar("Function", bound=Callable[..., object])


def traced_whole(function: Function) -> Function:
    """Mark a function for tracers: called with something that overrides torch functions, it announces itself.

    ``__wrapped__`` is the body.
    """

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> object:
        overriding = tuple(
            arg for arg in (*args, *kwargs.values()) if hasattr(type(arg), "__torch_function__")
        )
        if has_torch_function(overriding):
            return handle_torch_function(call, overriding, *args, **kwargs)
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]


@traced_whole
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
    A query to which the bias forbids every key gets the mean of all values: never NaN.

    softcap: scores become softcap * tanh(scores / softcap) before the bias is added (Gemma 2).
    sinks: H, scores of a key without a value, one more in each softmax (GPT-OSS); where the bias forbids every key,
    it takes all weight.
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
    groups = key.shape[1]
    mixed = weights.unflatten(1, (groups, query.shape[1] // groups)) @ value[:, :, None]  # B G H/G T K
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
    """softmax(scale * query @ key^T + bias), as :func:`attention` has it -> B H T S; with sinks B H T (S + 1), theirs last."""
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


@traced_whole
def attention_bias(
    key_mask: Tensor | None,
    position_bias: Tensor | None,
    queries: Tensor | None,
    keys: Tensor | None,
    like: Tensor,
    *,
    causal: bool,
    window: int | None = None,
) -> Tensor | None:
    """The additive bias of a stack's attentions: position_bias where a query may see a key, else a very low number.

    key_mask: B S with 1 for real tokens, position_bias: (B or 1) H (T or 1) S, queries and keys: their positions, (B or 1) T
    and (B or 1) S, which only a causal or windowed bias needs -> (B or 1) (H or 1) T S of the dtype of ``like``, or None
    for no bias.  window: a causal query sees the last ``window`` keys, itself included, any other query half that many on
    either side.
    """
    allowed = None
    if causal or window is not None:
        assert queries is not None
        assert keys is not None
        here, there = queries[:, None, :, None], keys[:, None, None, :]  # (B or 1) 1 T 1, (B or 1) 1 1 S
        first = None if window is None else here - (window - 1 if causal else window // 2)
        last = here if causal else here + window // 2  # type: ignore[operator]
        allowed = there <= last  # (B or 1) 1 T S
        allowed = allowed if first is None else allowed & (there >= first)
    if key_mask is not None:
        real = key_mask[:, None, None, :] != 0  # B 1 1 S
        allowed = real if allowed is None else real & allowed  # B 1 T S
    if allowed is None:
        return position_bias
    seen = constant((0.0,), like).to(like.dtype) if position_bias is None else position_bias
    return torch.where(allowed, seen, forbidden(like.dtype))


def forbidden(dtype: torch.dtype) -> float:
    """A score next to which all others are 0: half the lowest, which some kernels take for no number at all."""
    return torch.finfo(dtype).min / 2


@traced_whole
def alibi_bias(
    slopes: tuple[float, ...], queries: Tensor, keys: Tensor, like: Tensor, *, scale: float
) -> Tensor:
    """scale * slope * -distance for each head (Press et al., 2022), of the dtype of ``like``.

    queries and keys: their positions, (B or 1) T and (B or 1) S -> (B or 1) H T S.
    """
    distances = relative_positions(queries, keys).abs()[:, None].to(torch.float32)  # (B or 1) 1 T S
    penalties = constant(slopes, like)[:, None, None] * -distances  # (B or 1) H T S
    return (penalties if scale == 1.0 else penalties * scale).to(like.dtype)


@traced_whole
def routing_weights(
    scores: Tensor,
    choice: Tensor,
    *,
    top_k: int,
    groups: tuple[int, int, int] | None,
    normalize: bool,
    scale: float,
) -> Tensor:
    """The weight of each expert for each token: its score where it is among the ``top_k`` of the choice, else 0.

    scores and choice: B T E -> B T E.  ``groups`` are as in :func:`in_best_groups`.
    """
    if groups is not None:
        choice = in_best_groups(choice, *groups)
    weights = scores * among_largest(choice, top_k)
    if normalize:
        weights = weights / weights.sum(-1, keepdim=True)
    return weights * scale


def among_largest(x: Tensor, count: int) -> Tensor:
    """1 for the ``count`` largest along the last axis, and 0 for the others: ... N -> ... N."""
    indices = x.topk(count, -1)[1]  # ... count
    every = constant(tuple(range(x.shape[-1])), x)  # N
    return (indices[..., None] == every).to(x.dtype).sum(-2)


def in_best_groups(choice: Tensor, count: int, top: int, best: int) -> Tensor:
    """Scores of experts outside the ``top`` of ``count`` groups become the lowest number: ... E -> ... E.

    A group scores the sum of its ``best`` best (DeepSeek-V2 and V3).
    """
    by_group = choice.unflatten(-1, (count, choice.shape[-1] // count))  # ... C E/C
    kept = among_largest(by_group.topk(best, -1)[0].sum(-1), top) > 0  # ... C
    return torch.where(kept[..., None], by_group, torch.finfo(choice.dtype).min).flatten(-2)


@traced_whole
def by_expert(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x @ weight[e]^T + bias[e] for every expert e, as one product.

    x: B T D, weight: E H D, bias: E H -> B T E H.
    """
    flat = F.linear(x, weight.flatten(0, 1), None if bias is None else bias.flatten())  # B T (E H)
    return flat.unflatten(-1, (weight.shape[0], weight.shape[1]))


@traced_whole
def mixed_experts(hidden: Tensor, weights: Tensor, down: Tensor, bias: Tensor | None) -> Tensor:
    """The sum over experts e of weights[e] * (hidden[e] @ down[e] + bias[e]), as one product.

    hidden: B T E H, weights: B T E, down: E H D, bias: E D -> B T D.
    """
    weighted = (hidden * weights[..., None]).flatten(-2)  # B T (E H)
    mixed = torch.matmul(weighted, down.flatten(0, 1))
    return mixed if bias is None else mixed + torch.matmul(weights, bias)


@traced_whole
def rotary_embedding(x: Tensor, cos: Tensor, sin: Tensor, *, dimensions: int, interleaved: bool) -> Tensor:
    """Rotate the first ``dimensions`` of each head by the angles of its position (Su et al., 2021).

    x: B H T K, cos and sin: B T R with R = dimensions / 2 -> B H T K.
    """
    cos, sin = cos[:, None], sin[:, None]  # B 1 T R
    first, rest = x[..., :dimensions], x[..., dimensions:]
    if interleaved:
        a, b = first[..., 0::2], first[..., 1::2]  # B H T R
        rotated = torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)
    else:
        a, b = first[..., : dimensions // 2], first[..., dimensions // 2 :]  # B H T R
        rotated = torch.cat((a * cos - b * sin, b * cos + a * sin), -1)
    return torch.cat((rotated, rest), -1)


@traced_whole
def rotate(
    x: Tensor,
    positions: Tensor,
    frequencies: tuple[float, ...] | Tensor,
    *,
    amplitude: float,
    dimensions: int,
    interleaved: bool,
) -> Tensor:
    """Rotate queries or keys by the angles of their positions, whose cosines and sines are ``amplitude`` times as long.

    x: B H T K, positions: B T, frequencies: R radians per position -> B H T K.
    """
    turned = angles(positions, frequencies)  # B T R
    cos, sin = (turned.cos() * amplitude).to(x.dtype), (turned.sin() * amplitude).to(x.dtype)
    return rotary_embedding(x, cos, sin, dimensions=dimensions, interleaved=interleaved)


@traced_whole
def angles(positions: Tensor, frequencies: tuple[float, ...] | Tensor) -> Tensor:
    """positions: B T, frequencies: R radians per position -> B T R in float32."""
    factors = constant(frequencies, positions) if isinstance(frequencies, tuple) else frequencies
    return positions[..., None].to(torch.float32) * factors


@traced_whole
def dynamic_frequencies(
    length: Tensor, *, exponents: tuple[float, ...], theta: float, factor: float, power: float, original: int
) -> Tensor:
    """Rotary frequencies whose theta grows with the length of an input beyond ``original``: a scalar -> R, float32."""
    longer = length.clamp(min=original).to(torch.float32)
    grown = theta * (factor * longer / original - (factor - 1)) ** power
    return 1.0 / grown ** constant(exponents, length)


@traced_whole
def frequencies_by_length(
    length: Tensor, *, short: tuple[float, ...], long: tuple[float, ...], original: int
) -> Tensor:
    """Rotary frequencies for inputs up to ``original`` long, and for longer ones: a scalar -> R, float32."""
    return torch.where(length > original, constant(long, length), constant(short, length))


@traced_whole
def relative_positions(queries: Tensor, keys: Tensor) -> Tensor:
    """Position of each key minus that of each query: (B or 1) T and (B or 1) S -> (B or 1) T S, int64."""
    return keys[:, None, :] - queries[:, :, None]


@traced_whole
def token_positions(mask: Tensor, query_length: int) -> Tensor:
    """How many real tokens stand before each of the last T: padding on either side shifts nothing.

    mask: B S with 1 for real tokens -> B T, int64.
    """
    positions = (mask.cumsum(1) - 1).clamp(min=0)  # B S
    return positions[:, mask.shape[1] - query_length :]


@traced_whole
def positions_from(start: int, length: int, like: Tensor) -> Tensor:
    """start, start + 1, ... on the device of ``like`` -> length, int64."""
    return torch.arange(start, start + length, device=like.device)


@traced_whole
def constant(values: tuple[float, ...] | tuple[int, ...], like: Tensor) -> Tensor:
    """A fixed vector, float32 or int64, on the device of ``like``."""
    dtype = torch.int64 if isinstance(values[0], int) else torch.float32
    return torch.tensor(values, dtype=dtype, device=like.device)


@traced_whole
def rounded_to_bfloat16(x: Tensor) -> Tensor:
    """The nearest numbers that bfloat16 has, in float32: a rounding that the architecture states, in every precision."""
    return x.to(torch.float32).to(torch.bfloat16).to(torch.float32)


@traced_whole
def append(past: Tensor | None, new: Tensor) -> Tensor:
    """Keys or values of new tokens after those of earlier ones: B G P K and B G T K -> B G (P + T) K."""
    return new if past is None else torch.cat((past, new), 2)


@traced_whole
def write(past: Tensor, new: Tensor, start: Tensor) -> Tensor:
    """Keys or values of new tokens in the places of a cache from ``start`` on, over what was there.

    past: B G L K, new: B G T K, start: B, each at most L - T -> B G L K.
    """
    places = start[:, None] + positions_from(0, new.shape[2], start)  # B T
    return past.scatter(2, places[:, None, :, None].expand(-1, new.shape[1], -1, new.shape[3]), new)
