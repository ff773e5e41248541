"""The gated delta rule: a linear attention whose state forgets, and corrects what a key already recalls.

Many tokens are computed in chunks, in which the corrections of a token by those before it are one triangular system (the WY
form); its inverse is found by halves, in matrix products.

Shapes: batch B, key heads G, heads H, tokens T, key width K, value width V, rows R = B H, chunks of a row N, tokens of a
chunk C.  Decay has one number per head, or one per key channel: width L is 1 or K.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo.functional.tensors import positions_from

CHUNK = 64
"""The most tokens of a chunk, a power of 2."""


def delta_rule(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    decay: Tensor,
    beta: Tensor,
    state: Tensor | None,
    real: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """S_t = a_t S_(t-1) + beta_t k_t (v_t - a_t S_(t-1)^T k_t)^T and S_t^T q_t of every token, and the last S, in plain operations."""
    dtype = torch.promote_types(query.dtype, torch.float32)
    batch, heads, tokens, width = value.shape
    decay, beta = without_padding(decay, real), without_padding(beta, real)
    query, key = (x.repeat_interleave(heads // x.shape[1], 1) for x in (query, key))  # B H T K
    rows = tuple(x.to(dtype).flatten(0, 1) for x in (query, key, value, decay, beta))  # R T ...
    if state is None:
        start = rows[0].new_zeros(batch * heads, key.shape[-1], width)
    else:
        start = state.to(dtype).flatten(0, 1)  # R K V
    mixed, last = delta_step(start, *rows) if tokens == 1 else _in_chunks(start, *rows)
    return mixed.unflatten(0, (batch, heads)).to(query.dtype), last.unflatten(0, (batch, heads))


def chunk_length(tokens: int) -> int:
    """The tokens of a chunk: the least power of 2 that holds them all, at most ``CHUNK``."""
    return min(CHUNK, 1 << (tokens - 1).bit_length())


def matrix_products(rows: int, tokens: int, width: int, out: int, *, per_channel: bool) -> int:
    """The FLOPs of the matrix products of R rows, with keys of ``width`` and values of ``out``."""
    if tokens == 1:
        return rows * 6 * width * out
    size = chunk_length(tokens)
    pairs = size * size
    halves = width * size * (size - 1)  # what later tokens read from earlier ones, over all halves
    scores = 3 * halves + 2 * pairs * width if per_channel else 4 * pairs * width + 2 * pairs
    inverse = 2 * size * (pairs - 1) // 3
    products = scores + inverse + 2 * pairs * (width + 2 * out) + 6 * size * width * out
    return rows * -(-tokens // size) * products


def without_padding(gate: Tensor, real: Tensor | None) -> Tensor:
    """A gate as B H T L, 0 for padding: B H T or B H T L, B T -> B H T L."""
    wide = gate if gate.ndim == 4 else gate[..., None]
    return wide if real is None else torch.where(real[:, None, :, None] != 0, wide, 0.0)


def delta_step(
    state: Tensor, query: Tensor, key: Tensor, value: Tensor, decay: Tensor, beta: Tensor
) -> tuple[Tensor, Tensor]:
    """One token: R K V, R 1 K, R 1 K, R 1 V, R 1 L, R 1 1 -> R 1 V and R K V."""
    state = state * decay.exp().transpose(1, 2)  # R K V
    correction = (value - key @ state) * beta  # R 1 V
    state = state + key.transpose(1, 2) @ correction
    return query @ state, state


def _in_chunks(
    state: Tensor, query: Tensor, key: Tensor, value: Tensor, decay: Tensor, beta: Tensor
) -> tuple[Tensor, Tensor]:
    """Many tokens: R K V, R T K, R T K, R T V, R T L, R T 1 -> R T V and R K V."""
    rows, tokens, _ = query.shape
    size = chunk_length(tokens)
    count = -(-tokens // size)

    def chunks(x: Tensor) -> Tensor:
        """R T ... -> (R N) C ..., with zeros after the last token."""
        return F.pad(x, (0, 0, 0, count * size - tokens)).unflatten(1, (count, size)).flatten(0, 1)

    parts = delta_chunks(*map(chunks, (query, key, value, decay, beta)))
    mixed = []
    for chunk in zip(*(part.unflatten(0, (rows, count)).unbind(1) for part in parts), strict=True):
        out, state = delta_carry(state, *chunk)
        mixed.append(out)
    return torch.cat(mixed, 1)[:, :tokens], state


def delta_chunks(
    query: Tensor, key: Tensor, value: Tensor, decay: Tensor, beta: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Everything in chunks that does not depend on the state before them, for :func:`delta_carry`.

    query and key: M C K, value: M C V, decay: M C L, beta: M C 1 -> queries that read the state before the chunk, M C K;
    keys that write the state after it, M C K; what each token reads from each, M C C; values, M C V, and the keys whose
    values in the state before the chunk are to be subtracted from them, M C K; the decay of the whole chunk, M 1 L.
    """
    since = decay.cumsum(1).exp()  # M C L
    weight = key * beta
    products = decayed_products(torch.stack((query, weight), 1), key[:, None], decay[:, None])  # M 2 C C
    inverse = unit_lower_inverse(products[:, 1:])[:, 0]  # M C C
    values, reads = inverse @ (value * beta), inverse @ (weight * since)
    return query * since, key * sum_of_later(decay).exp(), products[:, 0], values, reads, since[:, -1:]


def delta_carry(
    state: Tensor, query: Tensor, key: Tensor, scores: Tensor, values: Tensor, reads: Tensor, decay: Tensor
) -> tuple[Tensor, Tensor]:
    """A chunk after the state before it: R K V, and the results of :func:`delta_chunks` -> R C V and R K V."""
    values = values - reads @ state  # R C V
    mixed = query @ state + scores @ values
    return mixed, state * decay.transpose(1, 2) + key.transpose(1, 2) @ values


def decayed_products(rows: Tensor, key: Tensor, decay: Tensor) -> Tensor:
    """sum_k rows_ik key_jk exp(decay_(j+1)k + ... + decay_ik) for j <= i, else 0: M A C K, M 1 C K, M 1 C L -> M A C C.

    Decays are summed over what is between two tokens: differences of sums over the chunk would cancel.
    """
    if decay.shape[-1] > 1:
        return _products_by_halves(rows[:, :, None], key[:, :, None], decay[:, :, None])[:, :, 0]
    tokens = positions_from(0, decay.shape[2], decay)  # C
    later, earlier = tokens[:, None], tokens
    between = torch.where(later > earlier, decay, 0.0).cumsum(2)  # M 1 C C
    return rows @ key.transpose(2, 3) * torch.where(later >= earlier, between.exp(), 0.0)


def _products_by_halves(rows: Tensor, key: Tensor, decay: Tensor) -> Tensor:
    """:func:`decayed_products` with a decay for each key channel: M A N C K, M 1 N C K twice -> M A N C C.

    Later tokens read earlier ones across the middle of the chunk: neither factor of a decay exceeds 1.
    """
    size = key.shape[3]
    if size == 1:
        return (rows * key).sum(-1, keepdim=True)  # M A N 1 1
    half = size // 2
    later = rows[:, :, :, half:] * decay[:, :, :, half:].cumsum(3).exp()  # M A N C/2 K
    earlier = key[:, :, :, :half] * sum_of_later(decay[:, :, :, :half]).exp()
    within = _products_by_halves(*(x.unflatten(3, (2, half)).flatten(2, 3) for x in (rows, key, decay)))
    return _lower_blocks(within, later @ earlier.transpose(3, 4))


def sum_of_later(decay: Tensor) -> Tensor:
    """The sum over all later tokens: ... C L -> ... C L."""
    tokens = positions_from(0, decay.shape[-2], decay)
    return (tokens[:, None] < tokens).to(decay.dtype) @ decay


def unit_lower_inverse(lower: Tensor) -> Tensor:
    """The inverse of the identity plus what is below the diagonal: M N C C -> M N C C.

    By halves, as substitution does, so that no large terms cancel (as they do in the powers of the matrix).
    """
    size = lower.shape[2]
    if size == 1:
        return lower * 0 + 1
    half = size // 2
    diagonal = torch.stack((lower[:, :, :half, :half], lower[:, :, half:, half:]), 2).flatten(1, 2)
    within = unit_lower_inverse(diagonal)  # M 2N C/2 C/2
    first, second = _pairs(within)
    return _lower_blocks(within, -(second @ lower[:, :, half:, :half] @ first))


def _lower_blocks(within: Tensor, across: Tensor) -> Tensor:
    """Two blocks on the diagonal and one below it as one matrix: ... 2N C C and ... N C C -> ... N 2C 2C."""
    first, second = _pairs(within)
    above = torch.cat((first, across * 0), -1)
    return torch.cat((above, torch.cat((across, second), -1)), -2)


def _pairs(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """The first and the second of each two blocks: ... 2N C C -> ... N C C twice."""
    pairs = blocks.unflatten(-3, (-1, 2))
    return pairs[..., 0, :, :], pairs[..., 1, :, :]
