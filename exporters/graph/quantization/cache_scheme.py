"""The quantization of keys and values: symmetric, one scale per channel of each key-value head, rounded half to even.

This is the arithmetic of com.microsoft's GroupQueryAttention with ``k_scale`` and ``v_scale``, which stores two 4-bit codes
per byte, the first in the low half, each with 8 added.

Shapes: batch B, key-value heads G, tokens S, head width K.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

QUANTIZED_TYPE = "PER_CHANNEL"
"""GroupQueryAttention's name for one scale per channel and head."""


@dataclass(frozen=True)
class CacheFormat:
    """A cache of integer codes in ``bits``."""

    bits: int

    @staticmethod
    def of(dtype: torch.dtype) -> CacheFormat:
        """The format of cache tensors of a dtype."""
        return CacheFormat(8 if dtype == torch.int8 else 4)

    @property
    def name(self) -> str:
        """The name of the option's value, such as ``int8``."""
        return f"int{self.bits}"

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of cache tensors."""
        return torch.int8 if self.bits == 8 else torch.uint8

    @property
    def low(self) -> int:
        """The lowest code."""
        return -(2 ** (self.bits - 1))

    @property
    def high(self) -> int:
        """The highest code."""
        return 2 ** (self.bits - 1) - 1

    def stored_width(self, width: int) -> int:
        """The last dimension of a cache tensor for heads of this width."""
        return width if self.bits == 8 else -(-width // 2)

    def codes(self, values: Tensor, scale: Tensor) -> Tensor:
        """The codes of keys or values, B G S K, as whole numbers in their dtype; scale: G 1 K."""
        return (values * (1 / scale)).round().clamp(self.low, self.high)

    def unpacked(self, stored: Tensor) -> Tensor:
        """The codes in a cache tensor, B G S and its stored width -> B G S K in float32."""
        if self.bits == 8:
            return stored.to(torch.float32)
        halves = torch.stack((stored & 15, stored >> 4), -1).flatten(-2)
        return halves.to(torch.float32) + self.low


CACHE_FORMATS = {"float": None, "int8": CacheFormat(8), "int4": CacheFormat(4)}
"""The cache formats by the names of the option; float has the dtype of the activations."""


def stored_codes(tensor: Tensor) -> Tensor:
    """The codes of a cache tensor in float32; a float cache unchanged."""
    return tensor if tensor.is_floating_point() else CacheFormat.of(tensor.dtype).unpacked(tensor)
