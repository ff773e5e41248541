"""Memory for large tensors."""

from __future__ import annotations

import math
import mmap
import sys
from collections.abc import Sequence

import torch
from torch import Tensor

PAGED = 2**20
"""The size in bytes from which a tensor has pages of its own."""


def in_own_pages(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """An empty tensor, whose pages return to the system as soon as it is released if it is large.

    The allocator keeps most of what is released, because threads allocate from heaps of their own, and tensors that stay lie
    between those that do not.
    """
    size = math.prod(shape) * dtype.itemsize
    if size < PAGED or sys.platform == "win32":
        return torch.empty(shape, dtype=dtype)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return torch.frombuffer(pages, dtype=dtype).view(shape)
