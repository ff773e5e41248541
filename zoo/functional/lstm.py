"""LSTM layers (Hochreiter and Schmidhuber, 1997).

Shapes: batch B, length T, width D, hidden width H.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo.functional.decorator import semantic_op


@dataclass(frozen=True)
class _Gates:
    """The weights of one direction: of the input, 4H D, of the hidden state, 4H H, and the sum of both biases, 4H."""

    input: Tensor
    hidden: Tensor
    bias: Tensor


@semantic_op
def lstm(
    x: Tensor,
    counts: Tensor,
    inputs: tuple[Tensor, ...],
    hidden: tuple[Tensor, ...],
    biases: tuple[Tensor, ...],
) -> Tensor:
    """An LSTM layer that reads a sequence forward and backward: x: B T D, counts: B, the real tokens at the front of each row -> B T 2H.

    ``inputs`` are the weights H D of the gates of the forward direction, input, output, forget and cell, then those of the backward one;
    ``hidden`` those of the hidden state, H H; ``biases`` those of the input, then of the hidden state, H, direction by direction.

    Computes in float32, unless ``x`` is float64, and returns the dtype of ``x``, with zeros for padding.
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    real = torch.arange(x.shape[1], device=x.device) < counts[:, None]  # B T
    values, kept = x.to(wide), real.to(wide)[..., None]
    results = []
    for direction in (0, 1):
        own = slice(4 * direction, 4 * direction + 4)
        both = [
            torch.cat(biases[8 * direction + part : 8 * direction + part + 4]).to(wide) for part in (0, 4)
        ]
        gates = _Gates(torch.cat(inputs[own]).to(wide), torch.cat(hidden[own]).to(wide), both[0] + both[1])
        results.append(_direction(values, kept, gates, backward=direction == 1))
    return torch.cat(results, -1).to(x.dtype)


def _direction(x: Tensor, kept: Tensor, gates: _Gates, *, backward: bool) -> Tensor:
    """One direction: B T D, and B T 1 with 1 for real tokens -> B T H."""
    from_input = F.linear(x, gates.input, gates.bias)  # B T 4H
    state = cell = x.new_zeros(x.shape[0], gates.hidden.shape[1])
    states: list[Tensor] = []
    order = range(x.shape[1])
    for t in reversed(order) if backward else order:
        into, out, forget, new = (from_input[:, t] + state @ gates.hidden.mT).chunk(4, -1)
        cell = (forget.sigmoid() * cell + into.sigmoid() * new.tanh()) * kept[:, t]
        state = out.sigmoid() * cell.tanh()
        states.append(state)
    return torch.stack(states[::-1] if backward else states, 1)
