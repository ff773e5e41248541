"""Functions that represent the operations of targets in fused graphs.

PyTorch never runs them, and reports are made before fusion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx

from exporters.graph.quantization.cache_scheme import CacheFormat
from zoo import functional
from zoo.ops import TensorInfo, register_operation
from zoo.ops.tokens import Mixing, TokenAxes, mixed, separate, separate_unless_second

Shape = Callable[..., Any]


def _never_reported(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("reports read graphs before fusion")


def entry(
    function: Callable[..., Any], mixing: Callable[[fx.Node, TokenAxes], Mixing] = mixed
) -> Callable[[Shape], Shape]:
    """Register the decorated function as an operation with this shape rule."""

    def add(shape: Shape) -> Shape:
        register_operation(function, shape=shape, mixing=mixing, flops=_never_reported, saved=_never_reported)
        return shape

    return add


def joined_linear(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor] = ()) -> Tensor:
    """x @ weight^T + bias for several weights, concatenated: ... D -> ... (N1 + N2 + ...)."""
    return F.linear(x, torch.cat([*weights]), torch.cat([*biases]) if biases else None)


@entry(joined_linear, separate)
def _joined_linear(
    x: TensorInfo, weights: Sequence[TensorInfo], biases: Sequence[TensorInfo] = ()
) -> TensorInfo:
    return TensorInfo((*x.shape[:-1], sum(weight.shape[0] for weight in weights)), x.dtype)


def wide_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x @ weight^T + bias of float16 in float32, so that large results do not overflow."""
    return F.linear(x.float(), weight.float(), None if bias is None else bias.float())


@entry(wide_linear, separate_unless_second)
def _wide_linear(x: TensorInfo, weight: TensorInfo, bias: TensorInfo | None = None) -> TensorInfo:
    return TensorInfo((*x.shape[:-1], weight.shape[0]), torch.float32)


@dataclass(frozen=True)
class RotaryTables:
    """Rotary angles for positions up to a limit: radians per position, and the length of the cosines and sines."""

    frequencies: tuple[float, ...]
    amplitude: float
    interleaved: bool
    positions: int

    def cos(self) -> Tensor:
        """Return the cosines, positions R, computed as in :func:`zoo.functional.rotate`."""
        return self._angles().cos() * self.amplitude

    def sin(self) -> Tensor:
        """Return the sines, positions R."""
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
    window_cache: bool = False,
    **options: Any,
) -> Any:
    """Rotation, append, and causal attention: com.microsoft's GroupQueryAttention.

    projected: queries, keys and values, B T (H K), B T (G K) twice, or one tensor with the three side by side;
    past_key and past_value: B G P K, or in the format of ``cache``; mask: B (P + T), used only for its number of real
    tokens. Returns B T (H K), and all keys and values so far; with ``window_cache``, the last keys and values in as many slots
    as before.
    """
    raise NotImplementedError


@entry(group_query_attention)
def _group_query_attention(
    projected: Sequence[TensorInfo],
    past_key: TensorInfo,
    past_value: TensorInfo,
    mask: TensorInfo,
    *,
    heads: int,
    window_cache: bool = False,
    **options: Any,
) -> tuple[TensorInfo, ...]:
    batch, length, _ = projected[0].shape
    _, groups, past, stored_width = past_key.shape
    width = head_width(sum(part.shape[-1] for part in projected), heads, groups)
    slots = past if window_cache else past + length
    so_far = TensorInfo((batch, groups, slots, stored_width), past_key.dtype)
    return TensorInfo((batch, length, heads * width), projected[0].dtype), so_far, so_far


def head_width(projected: int, heads: int, groups: int) -> int:
    """Return the width of a head, given the combined width of queries, keys and values."""
    return projected // (heads + 2 * groups)


def bias_gelu(x: Any, bias: Any, *, operation: str) -> Any:
    """Return GELU of x + bias, ... N and N: com.microsoft's ``operation``."""
    raise NotImplementedError


@entry(bias_gelu, separate)
def _bias_gelu(x: TensorInfo, *args: Any, **options: Any) -> TensorInfo:
    return x


def skip_norm(x: Any, branch: Any, weight: Any, bias: Any, *, eps: float, operation: str) -> Any:
    """Return the norm of x + branch, B T D, and the sum itself: com.microsoft's ``operation``."""
    raise NotImplementedError


@entry(skip_norm, separate)
def _skip_norm(x: TensorInfo, *args: Any, **options: Any) -> tuple[TensorInfo, TensorInfo]:
    return x, x


def gated_norm(x: Any, weight: Any, gate: Any, *, eps: float, activation: str) -> Any:
    """Return the root-mean-square norm of x, ... K, times the activation of a gate of its shape: com.microsoft's GatedRMSNorm."""
    raise NotImplementedError


@entry(gated_norm, separate)
def _gated_norm(x: TensorInfo, *args: Any, **options: Any) -> TensorInfo:
    return x


def delta_gates(steps: Any, bias: Any, rates: Any, update: Any = None) -> Any:
    """Return rates * softplus(steps + bias) and sigmoid(update), B T H each: com.microsoft's LinearAttentionGate.

    Without ``update`` the second result is missing.
    """
    raise NotImplementedError


@entry(delta_gates, separate)
def _delta_gates(
    steps: TensorInfo, bias: TensorInfo, rates: TensorInfo, update: TensorInfo | None = None
) -> tuple[TensorInfo, ...]:
    return (steps,) if update is None else (steps, update)


def unit_length(x: Any, eps: float, *, length: float) -> Any:
    """:func:`zoo.functional.unit_length` times ``length``, as a norm with weights: runtimes have a kernel for norms."""
    raise NotImplementedError


@entry(unit_length, separate)
def _unit_length(x: TensorInfo, eps: float, **options: Any) -> TensorInfo:
    return TensorInfo(x.shape, torch.float32)


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
    """Return attention over concatenated heads: com.microsoft's MultiHeadAttention.

    query: B T (H K), key and value: B S (H K), or B H S K from a cache; key_mask: B S with 1 for real keys;
    bias: (B or 1) (H or 1) T S -> B T (H K). With past keys and values, B H P K each, all keys and values so far are
    returned as well.
    """
    raise NotImplementedError


def _masked(node: fx.Node, tokens: TokenAxes) -> Mixing:
    masks = [*node.args[3:5], node.kwargs.get("key_mask"), node.kwargs.get("bias")]
    return Mixing.MIXED if all(mask is None for mask in masks) else Mixing.MASKED


@entry(multi_head_attention, _masked)
def _multi_head_attention(
    query: TensorInfo,
    key: TensorInfo,
    value: TensorInfo,
    key_mask: TensorInfo | None = None,
    bias: TensorInfo | None = None,
    *past: TensorInfo,
    heads: int,
    **options: Any,
) -> TensorInfo | tuple[TensorInfo, ...]:
    width = value.shape[-1] * (1 if value.ndim == 3 else heads)
    mixed = TensorInfo((*query.shape[:2], width), query.dtype)
    so_far = [
        TensorInfo((*part.shape[:2], part.shape[2] + query.shape[1], part.shape[3]), part.dtype)
        for part in past
    ]
    return (mixed, *so_far) if past else mixed


def taken_tokens(mask: Tensor) -> Tensor:
    """The indices of the tokens to pack: B T with 1 for real tokens -> N 1.

    These are the real tokens, and all tokens of rows that are all padding, which attend to everything.
    """
    raise NotImplementedError


@entry(taken_tokens)
def _taken_tokens(mask: TensorInfo) -> TensorInfo:
    return TensorInfo(
        (mask.shape[0] * mask.shape[1] - 1, 1), torch.int64
    )  # N, traced as if one token were padding


def token_rows(mask: Tensor) -> Tensor:
    """The index of the packed token at each position, or at the previous one for padding: B T -> B T."""
    raise NotImplementedError


@entry(token_rows)
def _token_rows(mask: TensorInfo) -> TensorInfo:
    return TensorInfo(mask.shape, torch.int64)


def pack(x: Tensor, tokens: Tensor) -> Tensor:
    """Tokens as a batch of sequences of one token each: B T ... and N 1 -> N 1 ..."""
    raise NotImplementedError


@entry(pack)
def _pack(x: TensorInfo, tokens: TensorInfo) -> TensorInfo:
    return TensorInfo((*tokens.shape, *x.shape[2:]), x.dtype)


def unpack(x: Tensor, rows: Tensor, *, part: int = 0, parts: int = 1) -> Tensor:
    """Unpack tokens: N 1 ... and the result of ``token_rows``, B T -> B T ...

    Returns one of several equal parts of the last axis of x, N 1 D: B T (D / parts).
    """
    raise NotImplementedError


@entry(unpack)
def _unpack(x: TensorInfo, rows: TensorInfo, *, part: int = 0, parts: int = 1) -> TensorInfo:
    rest = x.shape[2:] if parts == 1 else (x.shape[2] // parts,)
    return TensorInfo((*rows.shape, *rest), x.dtype)


def unpack_or_zero(x: Tensor, mask: Tensor) -> Tensor:
    """Unpack tokens, with 0 at padding: N 1 ... and the mask, B T -> B T ..."""
    raise NotImplementedError


@entry(unpack_or_zero)
def _unpack_or_zero(x: TensorInfo, mask: TensorInfo) -> TensorInfo:
    return TensorInfo((*mask.shape, *x.shape[2:]), x.dtype)


def whole_attention(query: Any, key: Any, value: Any, bias: Any, *, scale: float) -> Any:
    """Return :func:`zoo.functional.attention` without sinks and softcap: the standard Attention."""
    raise NotImplementedError


@entry(whole_attention)
def _whole_attention(
    query: TensorInfo, key: TensorInfo, value: TensorInfo, bias: TensorInfo | None, **options: Any
) -> TensorInfo:
    return query


def whole_rotation(x: Any, cos: Any, sin: Any, *, dimensions: int, interleaved: bool) -> Any:
    """Return :func:`zoo.functional.rotary_embedding`: the standard RotaryEmbedding."""
    raise NotImplementedError


@entry(whole_rotation)
def _whole_rotation(x: TensorInfo, cos: TensorInfo, sin: TensorInfo, **options: Any) -> TensorInfo:
    return x


def whole_write(past: Any, new: Any, start: Any) -> Any:
    """Return :func:`zoo.functional.write`: TensorScatter."""
    raise NotImplementedError


@entry(whole_write)
def _whole_write(past: TensorInfo, new: TensorInfo, start: TensorInfo) -> TensorInfo:
    return past
