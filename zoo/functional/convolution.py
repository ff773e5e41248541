"""Causal convolutions and shifts over tokens, with the last tokens of earlier calls as their state.

Shapes: batch B, new tokens T, channels D, width of the window W.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo.functional.decorator import semantic_op
from zoo.functional.tensors import constant, positions_from


class TokenAlignment(NamedTuple):
    """Where tokens are once padding is moved before the state.

    columns: B (W - 1 + T), the flat index among B (W - 1 + T) columns, state and tokens, of the column that moves to each
    place.  tokens: B T, the flat index among B T outputs of the output of each token.
    """

    columns: Tensor
    tokens: Tensor


@semantic_op
def token_alignment(real: Tensor | None, width: int) -> TokenAlignment | None:
    """The permutation that moves padding before the state and keeps the order of everything else.

    real: B T, 0 for padding; None for no padding.  All convolutions of one width share the result.
    """
    if real is None:
        return None
    batch, length = real.shape
    state = width - 1
    kept = (real != 0).to(torch.int64).cumsum(1)  # B T: real tokens up to each
    padding = length - kept[:, -1:]  # B 1
    tokens = positions_from(0, length, real)  # T
    moved = torch.where(real != 0, padding + kept + (state - 1), tokens - kept)  # B T
    places = torch.cat((padding + positions_from(0, state, real), moved), 1)  # B (W - 1 + T)
    columns = positions_from(0, length + state, real).expand(batch, -1)
    columns = places.scatter(1, places, columns)  # places are a permutation: every entry is overwritten
    row = positions_from(0, batch, real)[:, None]
    return TokenAlignment(columns + row * (length + state), padding + kept - 1 + row * length)


@semantic_op
def causal_convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None, state: Tensor | None, alignment: TokenAlignment | None
) -> tuple[Tensor, Tensor]:
    """The depthwise convolution of each token with the W - 1 real tokens before it, and the new state.

    x: B T D, weight: D W, bias: D, state: B D (W - 1), or None for zeros, alignment: of :func:`token_alignment` for the
    same W -> B T D and B D (W - 1).  Padding enters no window of a real token and no state; its own outputs are finite,
    and mean nothing.
    """
    batch, _, channels = x.shape
    before = weight.shape[1] - 1
    if state is None:
        past = constant((0.0,), x).to(x.dtype).expand(batch, before, channels)
    else:
        past = state.transpose(1, 2)  # B (W - 1) D
    joined = torch.cat((past, x), 1)  # B (W - 1 + T) D
    if alignment is not None:
        joined = F.embedding(alignment.columns, joined.flatten(0, 1))
    columns = joined.transpose(1, 2)  # B D (W - 1 + T)
    y = depthwise_convolution(columns, weight, bias).transpose(1, 2)  # B T D
    if alignment is not None:
        y = F.embedding(alignment.tokens, y.flatten(0, 1))
    return y, columns[:, :, -before:]


def token_shift(x: Tensor, state: Tensor | None, alignment: TokenAlignment | None) -> tuple[Tensor, Tensor]:
    """The real token before each, and the last one.

    x: B T D, state: B D, the last token of an earlier call, or None for zeros, alignment: of :func:`token_alignment` for a
    width of 2 -> B T D and B D.
    """
    start = constant((0.0,), x).to(x.dtype).expand(x.shape[0], x.shape[2]) if state is None else state
    joined = torch.cat((start[:, None], x), 1)  # B (1 + T) D
    if alignment is not None:
        joined = F.embedding(alignment.columns, joined.flatten(0, 1))
    before = joined[:, :-1]
    if alignment is not None:
        before = F.embedding(alignment.tokens, before.flatten(0, 1))
    return before, joined[:, -1]


@semantic_op
def depthwise_convolution(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The convolution of each channel with its own window, without padding: B D (W - 1 + T), D W, D -> B D T."""
    return F.conv1d(x, weight[:, None], bias, groups=weight.shape[0])
