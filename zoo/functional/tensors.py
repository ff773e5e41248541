"""Constants, positions and stated rounding.

Shapes: batch B, query length T, key length S.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo.functional.decorator import semantic_op


@semantic_op
def constant(values: tuple[float, ...] | tuple[int, ...], like: Tensor) -> Tensor:
    """A constant vector, float32 or int64, on the device of ``like``."""
    dtype = torch.int64 if isinstance(values[0], int) else torch.float32
    return torch.tensor(values, dtype=dtype, device=like.device)


@semantic_op
def rounded_to_bfloat16(x: Tensor) -> Tensor:
    """x rounded to bfloat16, in float32: for rounding that the architecture states, whatever the precision."""
    return x.to(torch.float32).to(torch.bfloat16).to(torch.float32)


@semantic_op
def positions_from(start: int, length: int, like: Tensor) -> Tensor:
    """start, start + 1, ... on the device of ``like`` -> length, int64."""
    return torch.arange(start, start + length, device=like.device)


def last(x: Tensor, count: int) -> Tensor:
    """The last columns of a matrix: B S -> B count.

    (PyTorch's exporter knows the size of such a view, and not that of a slice that begins at a size.)
    """
    return x.narrow(1, x.shape[1] - count, count)


@semantic_op
def last_real(x: Tensor, mask: Tensor) -> Tensor:
    """The vector of the last real token of each row, or zeros if all are padding: B T D, and B T with 1 for real tokens -> B D."""
    number = mask.cumsum(1)  # B T: 1 for the first real token
    share = mask * (number == number[:, -1:])
    return (share.to(x.dtype)[:, None] @ x)[:, 0]  # (B 1 T @ B T D) -> B D


@semantic_op
def token_positions(mask: Tensor, query_length: int) -> Tensor:
    """The number of real tokens before each of the last T, so that padding on either side shifts no position.

    mask: B S with 1 for real tokens -> B T, int64.
    """
    positions = (mask.cumsum(1) - 1).clamp(min=0)  # B S
    return last(positions, query_length)


@semantic_op
def relative_positions(queries: Tensor, keys: Tensor) -> Tensor:
    """Position of each key minus the position of each query: (B or 1) T and (B or 1) S -> (B or 1) T S, int64."""
    return keys[:, None, :] - queries[:, :, None]


def rest_of_run(token: int, ids: Tensor) -> Tensor:
    """The number of tokens after each in the same run of a token, and 0 for other tokens: B T -> B T, int64."""
    matches = (ids == token).to(torch.int64)  # B T
    count = matches.cumsum(1)  # B T: occurrences up to each
    others = positions_from(1, ids.shape[1], ids) - count  # B T: other tokens up to each, equal within a run
    # The n-th other token writes the count before it to slot n - 1, that at the end of the run with n - 1 others before it.
    slots = torch.where(matches > 0, others[:, -1:] + count, others - 1)  # B T: no two are equal
    ends = count[:, -1:].expand(-1, ids.shape[1] + 1).scatter(1, slots, count)  # B (T + 1)
    return matches * (ends.gather(1, others) - count)


def in_place_of(token: int, ids: Tensor, x: Tensor, vectors: Tensor) -> Tensor:
    """x with the first vector at the first occurrence of a token, the second at the second, and so on, row after row;
    occurrences after the last vector are left as they are.

    ids: B T, x: B T D, vectors: M V D -> B T D.
    """
    matches = (ids == token).to(torch.int64)  # B T
    number = matches.reshape(-1).cumsum(0).reshape(ids.shape)  # B T: 1 for the first occurrence
    table = torch.cat((x[:1, :1] * 0.0, vectors.reshape(1, -1, x.shape[2])), 1)[0]  # 1 + M V, D
    row = matches * number * (number < table.shape[0]).to(torch.int64)  # B T: 0 for none
    return torch.where(row[:, :, None] > 0, F.embedding(row, table), x)
