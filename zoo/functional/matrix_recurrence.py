"""Linear attention with decay: a matrix per head as state, which new tokens are added to.

Shapes: batch B, length T, heads H, heads of keys G, heads per head of keys R, key width K, value width V, chunk length C.
"""

from __future__ import annotations

import torch
from torch import Tensor

from zoo.functional.decorator import semantic_op

CHUNK = 64
"""The tokens that are computed at once, by matrix products."""


@semantic_op
def linear_attention(
    query: Tensor, key: Tensor, value: Tensor, decay: Tensor, state: Tensor | None, real: Tensor | None
) -> tuple[Tensor, Tensor]:
    """S_t = exp(decay_t) S_(t-1) + key_t value_t^T, output_t = S_t^T query_t (Mamba-2: Dao and Gu, 2024).

    query and key: B G T K with G dividing H, value: B H T V, decay: B H T, state: B H K V, or None for zeros, real: B T with
    1 for real tokens, or None if all are -> B H T V in the dtype of ``value``, and the new state.

    Computes in the dtype of the state: float32, unless ``value`` is float64.  Padding leaves the state as it is, and its own
    output means nothing.
    """
    wide = torch.promote_types(value.dtype, torch.float32)
    if state is None:
        state = value.new_zeros(*value.shape[:2], key.shape[-1], value.shape[-1], dtype=wide)
    if real is not None:
        decay, key = decay * real[:, None], key * real[:, None, :, None]
    outputs = []
    parts = (part.to(wide).split(CHUNK, 2) for part in (query, key, value, decay))
    for chunk in zip(*parts, strict=True):
        output, state = _chunk(state, *(part.contiguous() for part in chunk))
        outputs.append(output)
    return torch.cat(outputs, 2).to(value.dtype), state


def _chunk(state: Tensor, query: Tensor, key: Tensor, value: Tensor, decay: Tensor) -> tuple[Tensor, Tensor]:
    """The same for one chunk: B H K V, B G C K twice, B H C V, B H C -> B H C V, B H K V."""
    groups = key.shape[1]
    value, decay, state = (part.unflatten(1, (groups, -1)) for part in (value, decay, state))  # B G R ...
    between = decays_between(decay)  # B G R C C
    before = decay.cumsum(-1).exp()[..., None]  # B G R C 1
    scores = (query @ key.mT)[:, :, None] * between  # B G R C C
    output = scores @ value + before * (query[:, :, None] @ state)  # B G R C V
    rest = between[..., -1, :, None] * value  # B G R C V
    state = before[..., -1:, :] * state + key[:, :, None].mT @ rest  # B G R K V
    return output.flatten(1, 2), state.flatten(1, 2)


def decays_between(decay: Tensor) -> Tensor:
    """The product of the decays after token s up to token t, at [t, s]; 0 where s is later: ... C -> ... C C.

    Sums of only those logarithms: the difference of two long sums would lose their digits.
    """
    steps = decay[..., None].expand(*decay.shape, decay.shape[-1]).tril(-1)
    return steps.cumsum(-2).exp().tril()
