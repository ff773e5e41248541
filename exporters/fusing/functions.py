"""What targets have operations for, beyond the functions that models call.

A rewritten graph calls these; none is ever run by PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo import functional
from zoo.tracing.facts import Facts, rule


def joined_linear(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor] = ()) -> Tensor:
    """x @ weight^T + bias for several weights, side by side: ... D -> ... (N1 + N2 + ...)."""
    return F.linear(x, torch.cat([*weights]), torch.cat([*biases]) if biases else None)


@rule(joined_linear)
def _joined_linear(x: Facts, weights: Sequence[Facts], biases: Sequence[Facts] = ()) -> Facts:
    return Facts((*x.shape[:-1], sum(weight.shape[0] for weight in weights)), x.dtype)


@dataclass(frozen=True)
class Rotation:
    """Rotary angles for positions up to a limit: radians per position, and the length of the cosines and sines."""

    frequencies: tuple[float, ...]
    amplitude: float
    interleaved: bool
    positions: int

    def tables(self) -> tuple[Tensor, Tensor]:
        """Cosines and sines: positions R each, computed as :func:`zoo.functional.rotate` does."""
        turned = functional.angles(torch.arange(self.positions)[None], self.frequencies)[0]
        return turned.cos() * self.amplitude, turned.sin() * self.amplitude


def group_query_attention(
    projected: Sequence[Any], past_key: Any, past_value: Any, mask: Any, *, heads: int, **options: Any
) -> Any:
    """Rotation, append, and causal attention: com.microsoft's GroupQueryAttention.

    projected: queries, keys and values, B T (H K), B T (G K) twice, or one tensor with the three side by side;
    past_key and past_value: B G P K; mask: B (P + T), whose real tokens are counted, not looked for.
    Returns B T (H K), and the keys and values so far.
    """
    raise NotImplementedError


@rule(group_query_attention)
def _group_query_attention(
    projected: Sequence[Facts], past_key: Facts, past_value: Facts, mask: Facts, *, heads: int, **options: Any
) -> tuple[Facts, ...]:
    batch, length, _ = projected[0].shape
    _, groups, past, width = past_key.shape
    so_far = Facts((batch, groups, past + length, width), past_key.dtype)
    return Facts((batch, length, heads * width), past_key.dtype), so_far, so_far


def skip_norm(x: Any, branch: Any, weight: Any, bias: Any, *, eps: float, operation: str) -> Any:
    """The norm of x + branch, B T D, and the sum itself: com.microsoft's ``operation``."""
    raise NotImplementedError


@rule(skip_norm)
def _skip_norm(x: Facts, *args: Any, **options: Any) -> tuple[Facts, Facts]:
    return x, x
