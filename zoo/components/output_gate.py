"""Gates on the output of an attention.

Shapes: batch B, tokens T, width D, heads H, width of a head's values V.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from specs.kinds.output_gate import OutputGate
from zoo.components.linear import Linear

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"sigmoid": torch.sigmoid, "softplus": F.softplus}


def gate_projection(gate: OutputGate | None, reads: int, heads: int, width: int) -> Linear | None:
    """The projection of a gate, to a factor per channel or per head; None without one."""
    if gate is None:
        return None
    return Linear(reads, heads if gate.over == "head" else heads * width, bias=gate.bias)


def gated(mixed: Tensor, gate: OutputGate, projected: Tensor, width: int) -> Tensor:
    """The output of an attention times its gate: B T (H V), B T (H V) or B T H -> B T (H V)."""
    factors = _ACTIVATIONS[gate.activation](projected)
    if gate.over == "channel":
        return mixed * factors
    return (mixed.unflatten(-1, (-1, width)) * factors[..., None]).flatten(-2)
