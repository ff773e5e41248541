"""The generalized delta rule: a linear attention whose state forgets by channel, and loses what one key recalls along another.

Many tokens are computed in chunks, as in :mod:`zoo.functional.delta`: what a token recalls depends on what those before it
erased, which is one triangular system.

Shapes: batch B, heads H, tokens T, key width K, value width V, rows R = B H, chunks of a row N, tokens of a chunk C, M = R N.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo.functional.delta import (
    chunk_length,
    decayed_products,
    sum_of_later,
    unit_lower_inverse,
    without_padding,
)
from zoo.functional.tensors import positions_from


def generalized_rule(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    decay: Tensor,
    recall: Tensor,
    erase: Tensor,
    state: Tensor | None,
    real: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """S_t = (I - e_t r_t^T) diag(w_t) S_(t-1) + k_t v_t^T and S_t^T q_t of every token, and the last S, in plain operations."""
    dtype = torch.promote_types(query.dtype, torch.float32)
    batch, heads, tokens, width = value.shape
    key, decay, erase = (without_padding(tensor, real) for tensor in (key, decay, erase))
    rows = tuple(x.to(dtype).flatten(0, 1) for x in (query, key, value, decay, recall, erase))  # R T ...
    if state is None:
        start = rows[0].new_zeros(batch * heads, key.shape[-1], width)
    else:
        start = state.to(dtype).flatten(0, 1)  # R K V
    mixed, last = generalized_step(start, *rows) if tokens == 1 else _in_chunks(start, *rows)
    return mixed.unflatten(0, (batch, heads)).to(query.dtype), last.unflatten(0, (batch, heads))


def generalized_products(rows: int, tokens: int, width: int, out: int) -> int:
    """The FLOPs of the matrix products of R rows, with keys of ``width`` and values of ``out``."""
    if tokens == 1:
        return rows * 8 * width * out
    size = chunk_length(tokens)
    pairs = size * size
    scores = 6 * width * size * (size - 1) + 2 * pairs * width  # by halves, and the sums of later decays
    inverse = 2 * size * (pairs - 1) // 3
    products = scores + inverse + 4 * pairs * width + 8 * pairs * out
    written = size * width * (2 * width + 4 * out)
    return rows * -(-tokens // size) * (products + written + 2 * size * width * out + 2 * width * width * out)


def generalized_step(
    state: Tensor, query: Tensor, key: Tensor, value: Tensor, decay: Tensor, recall: Tensor, erase: Tensor
) -> tuple[Tensor, Tensor]:
    """One token: R K V, R 1 K twice, R 1 V, R 1 K three times -> R 1 V and R K V."""
    state = state * decay.exp().transpose(1, 2)  # R K V
    state = state - erase.transpose(1, 2) @ (recall @ state) + key.transpose(1, 2) @ value
    return query @ state, state


def _in_chunks(state: Tensor, *rows: Tensor) -> tuple[Tensor, Tensor]:
    """Many tokens: R K V, and R T K, except for the third, R T V -> R T V and R K V."""
    count, tokens, _ = rows[0].shape
    size = chunk_length(tokens)
    number = -(-tokens // size)

    def chunks(x: Tensor) -> Tensor:
        """R T ... -> M C ..., with zeros after the last token."""
        return F.pad(x, (0, 0, 0, number * size - tokens)).unflatten(1, (number, size)).flatten(0, 1)

    query, key, value, decay, recall, erase = map(chunks, rows)
    parts = generalized_chunks(query, key, value, decay, recall, erase)
    mixed = []
    for chunk in zip(*(part.unflatten(0, (count, number)).unbind(1) for part in parts), strict=True):
        out, state = generalized_carry(state, *chunk)
        mixed.append(out)
    return torch.cat(mixed, 1)[:, :tokens], state


def generalized_chunks(
    query: Tensor, key: Tensor, value: Tensor, decay: Tensor, recall: Tensor, erase: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Everything in chunks that does not depend on the state before them, for :func:`generalized_carry`: M C K, and M C V of values.

    Returns queries that read the state before the chunk, M C K, and what is added to their results, M C V; the decay of the
    whole chunk, M 1 K, what is then erased of the state before it, M K K, and what is added to it, M K V.
    """
    since = decay.cumsum(1).exp()  # M C K
    readers = torch.stack((query, recall), 1)  # M 2 C K
    erased = decayed_products(readers, erase[:, None], decay[:, None])  # M 2 C C
    written = decayed_products(readers, key[:, None], decay[:, None])
    tokens = positions_from(0, query.shape[1], query)
    before = torch.where(
        tokens[:, None] > tokens, written[:, 1], 0.0
    )  # M C C: a token recalls before it writes
    inverse = unit_lower_inverse(erased[:, 1:])[:, 0]  # M C C
    recalled, reads = inverse @ (before @ value), inverse @ (recall * since)  # M C V, M C K
    later = sum_of_later(decay).exp()  # M C K
    key, erase = (key * later).transpose(1, 2), (erase * later).transpose(1, 2)  # M K C
    return (
        query * since - erased[:, 0] @ reads,
        written[:, 0] @ value - erased[:, 0] @ recalled,
        since[:, -1:],
        erase @ reads,
        key @ value - erase @ recalled,
    )


def generalized_carry(
    state: Tensor, query: Tensor, mixed: Tensor, decay: Tensor, erased: Tensor, added: Tensor
) -> tuple[Tensor, Tensor]:
    """A chunk after the state before it: R K V, and the results of :func:`generalized_chunks` -> R C V and R K V."""
    return mixed + query @ state, state * decay.transpose(1, 2) - erased @ state + added
