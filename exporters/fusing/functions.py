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

from exporters.quantized_cache.scheme import CacheFormat
from zoo import functional
from zoo.tracing.facts import Facts, rule


def joined_linear(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor] = ()) -> Tensor:
    """x @ weight^T + bias for several weights, side by side: ... D -> ... (N1 + N2 + ...)."""
    return F.linear(x, torch.cat([*weights]), torch.cat([*biases]) if biases else None)


@rule(joined_linear)
def _joined_linear(x: Facts, weights: Sequence[Facts], biases: Sequence[Facts] = ()) -> Facts:
    return Facts((*x.shape[:-1], sum(weight.shape[0] for weight in weights)), x.dtype)


def wide_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x @ weight^T + bias in float32, of float16: what is too large for float16 is no infinity."""
    return F.linear(x.float(), weight.float(), None if bias is None else bias.float())


@rule(wide_linear)
def _wide_linear(x: Facts, weight: Facts, bias: Facts | None = None) -> Facts:
    return Facts((*x.shape[:-1], weight.shape[0]), torch.float32)


@dataclass(frozen=True)
class Rotation:
    """Rotary angles for positions up to a limit: radians per position, and the length of the cosines and sines."""

    frequencies: tuple[float, ...]
    amplitude: float
    interleaved: bool
    positions: int

    def cos(self) -> Tensor:
        """positions R, computed as :func:`zoo.functional.rotate` does."""
        return self._angles().cos() * self.amplitude

    def sin(self) -> Tensor:
        """positions R."""
        return self._angles().sin() * self.amplitude

    def _angles(self) -> Tensor:
        return functional.angles(torch.arange(self.positions)[None], self.frequencies)[0]


def group_query_attention(
    projected: Sequence[Any],
    past_key: Any,
    past_value: Any,
    mask: Any,
    *,
    heads: int,
    cache: CacheFormat | None = None,
    **options: Any,
) -> Any:
    """Rotation, append, and causal attention: com.microsoft's GroupQueryAttention.

    projected: queries, keys and values, B T (H K), B T (G K) twice, or one tensor with the three side by side;
    past_key and past_value: B G P K, or as ``cache`` stores them; mask: B (P + T), whose real tokens are counted, not
    looked for.  Returns B T (H K), and the keys and values so far.
    """
    raise NotImplementedError


@rule(group_query_attention)
def _group_query_attention(
    projected: Sequence[Facts], past_key: Facts, past_value: Facts, mask: Facts, *, heads: int, **options: Any
) -> tuple[Facts, ...]:
    batch, length, _ = projected[0].shape
    _, groups, past, stored_width = past_key.shape
    width = head_width(sum(part.shape[-1] for part in projected), heads, groups)
    so_far = Facts((batch, groups, past + length, stored_width), past_key.dtype)
    return Facts((batch, length, heads * width), projected[0].dtype), so_far, so_far


def head_width(projected: int, heads: int, groups: int) -> int:
    """The width of a head, from that of queries, keys and values together."""
    return projected // (heads + 2 * groups)


def bias_gelu(x: Any, bias: Any, *, operation: str) -> Any:
    """GELU of x + bias, ... N and N: com.microsoft's ``operation``."""
    raise NotImplementedError


@rule(bias_gelu)
def _bias_gelu(x: Facts, *args: Any, **options: Any) -> Facts:
    return x


def skip_norm(x: Any, branch: Any, weight: Any, bias: Any, *, eps: float, operation: str) -> Any:
    """The norm of x + branch, B T D, and the sum itself: com.microsoft's ``operation``."""
    raise NotImplementedError


@rule(skip_norm)
def _skip_norm(x: Facts, *args: Any, **options: Any) -> tuple[Facts, Facts]:
    return x, x


def multi_head_attention(
    query: Any,
    key: Any,
    value: Any,
    key_mask: Any = None,
    bias: Any = None,
    past_key: Any = None,
    past_value: Any = None,
    *,
    heads: int,
    scale: float,
) -> Any:
    """Attention of heads that lie side by side: com.microsoft's MultiHeadAttention.

    query: B T (H K), key and value: B S (H K) or, as they are cached, B H S K; key_mask: B S with 1 for real keys;
    bias: (B or 1) (H or 1) T S -> B T (H K).  With a past, B H P K twice, which comes before key and value, the keys and
    values so far are results, too.
    """
    raise NotImplementedError


@rule(multi_head_attention)
def _multi_head_attention(
    query: Facts,
    key: Facts,
    value: Facts,
    key_mask: Facts | None = None,
    bias: Facts | None = None,
    *past: Facts,
    heads: int,
    **options: Any,
) -> Facts | tuple[Facts, ...]:
    width = value.shape[-1] * (1 if value.ndim == 3 else heads)
    mixed = Facts((*query.shape[:2], width), query.dtype)
    so_far = [
        Facts((*part.shape[:2], part.shape[2] + query.shape[1], part.shape[3]), part.dtype) for part in past
    ]
    return (mixed, *so_far) if past else mixed


def taken_tokens(mask: Tensor) -> Tensor:
    """The places, among all, of the tokens that are packed: B T with 1 for real ones -> N 1.

    They are the real ones, and all those of a row that has none: what attends to nothing but padding sees it all.
    """
    raise NotImplementedError


@rule(taken_tokens)
def _taken_tokens(mask: Facts) -> Facts:
    return Facts((mask.shape[0] * mask.shape[1] - 1, 1), torch.int64)  # N: as if one token were padding


def token_rows(mask: Tensor) -> Tensor:
    """Which packed token stands at each place, or at the one before where none does: B T -> B T."""
    raise NotImplementedError


@rule(token_rows)
def _token_rows(mask: Facts) -> Facts:
    return Facts(mask.shape, torch.int64)


def pack(x: Tensor, tokens: Tensor) -> Tensor:
    """Tokens as a batch of sequences of one token each: B T ... and N 1 -> N 1 ..."""
    raise NotImplementedError


@rule(pack)
def _pack(x: Facts, tokens: Facts) -> Facts:
    return Facts((*tokens.shape, *x.shape[2:]), x.dtype)


def unpack(x: Tensor, rows: Tensor, *, part: int = 0, parts: int = 1) -> Tensor:
    """Packed tokens back in their places: N 1 ... and B T, from ``token_rows`` -> B T ...

    Of several equal parts of the last axis of x, N 1 D, it gives one alone: B T (D / parts).
    """
    raise NotImplementedError


@rule(unpack)
def _unpack(x: Facts, rows: Facts, *, part: int = 0, parts: int = 1) -> Facts:
    rest = x.shape[2:] if parts == 1 else (x.shape[2] // parts,)
    return Facts((*rows.shape, *rest), x.dtype)


def unpack_or_zero(x: Tensor, mask: Tensor) -> Tensor:
    """Packed tokens back in their places, with 0 where none stands: N 1 ... and the mask, B T -> B T ..."""
    raise NotImplementedError


@rule(unpack_or_zero)
def _unpack_or_zero(x: Facts, mask: Facts) -> Facts:
    return Facts((*mask.shape, *x.shape[2:]), x.dtype)


def whole_attention(
    query: Any, key: Any, value: Any, bias: Any, *, scale: float, softcap: float | None
) -> Any:
    """What :func:`zoo.functional.attention` does without sinks: the standard Attention."""
    raise NotImplementedError


@rule(whole_attention)
def _whole_attention(query: Facts, key: Facts, value: Facts, bias: Facts | None, **options: Any) -> Facts:
    return query


def whole_rotation(x: Any, cos: Any, sin: Any, *, dimensions: int, interleaved: bool) -> Any:
    """What :func:`zoo.functional.rotary_embedding` does: the standard RotaryEmbedding."""
    raise NotImplementedError


@rule(whole_rotation)
def _whole_rotation(x: Facts, cos: Facts, sin: Facts, **options: Any) -> Facts:
    return x


def whole_write(past: Any, new: Any, start: Any) -> Any:
    """What :func:`zoo.functional.write` does: TensorScatter."""
    raise NotImplementedError


@rule(whole_write)
def _whole_write(past: Facts, new: Facts, start: Facts) -> Facts:
    return past
