"""Recurrences in which every channel has a decay of its own.

Shapes: batch B, length T, channels D, state width N, chunk length C.
"""

from __future__ import annotations

import torch
from torch import Tensor

from zoo.functional.decorator import semantic_op

CHUNK = 32
"""The tokens whose decays and inputs are in memory at once."""


@semantic_op
def diagonal_recurrence(
    x: Tensor, decay: Tensor, state: Tensor | None, real: Tensor | None
) -> tuple[Tensor, Tensor]:
    """h_t = exp(decay_t) h_(t-1) + x_t (the recurrence of RG-LRU: De et al., 2024).

    x and decay: B T D, state: B D, or None for zeros, real: B T with 1 for real tokens, or None if all are -> all h, B T D in
    the dtype of ``x``, and the last one.

    Computes in the dtype of the state: float32, unless ``x`` is float64.  Padding leaves the state as it is.
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    if state is None:
        state = x.new_zeros(x.shape[0], x.shape[2], dtype=wide)
    if real is not None:
        x, decay = x * real[..., None], decay * real[..., None]
    states, state = _states(decay.to(wide).exp(), x.to(wide), state)
    return states.to(x.dtype), state


@semantic_op
def selective_scan(
    x: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor, state: Tensor | None, real: Tensor | None
) -> tuple[Tensor, Tensor]:
    """h_t = exp(delta_t a) h_(t-1) + delta_t b_t x_t, y_t = c_t h_t (Mamba: Gu and Dao, 2023).

    x and delta: B T D, a: D N, b and c: B T N, state: B D N, or None for zeros, real: B T with 1 for real tokens, or None if
    all are -> B T D in the dtype of ``x``, and the new state.

    Computes in the dtype of the state: float32, unless ``x`` is float64.  Padding leaves the state as it is, and its own
    output means nothing.
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    if state is None:
        state = x.new_zeros(x.shape[0], *a.shape, dtype=wide)
    if real is not None:
        delta = delta * real[..., None]
    outputs = []
    wide_parts = (part.to(wide).split(CHUNK, 1) for part in (x, delta, b, c))
    for chunk in zip(*wide_parts, strict=True):
        output, state = _chunk(state, a.to(wide), *chunk)
        outputs.append(output)
    return torch.cat(outputs, 1).to(x.dtype), state


def _chunk(state: Tensor, a: Tensor, x: Tensor, delta: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """The same for one chunk: B D N, D N, B C D twice, B C N twice -> B C D, B D N."""
    decay = (delta[..., None] * a).exp()  # B C D N
    states, last = _states(decay, (delta * x)[..., None] * b[:, :, None], state)
    return (states @ c.contiguous()[..., None]).squeeze(-1), last


def _states(decay: Tensor, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """All h_t = decay_t * h_(t-1) + x_t, and the last one: B T ... twice, B ... -> B T ..., B ..."""
    states = []
    for decay_t, x_t in zip(decay.unbind(1), x.unbind(1), strict=True):
        state = torch.addcmul(x_t, decay_t, state)
        states.append(state)
    return torch.stack(states, 1), state
