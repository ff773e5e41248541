"""Keys and values of new tokens in a cache.

Shapes: batch B, key-value heads G, head width K, past length P, new tokens T, cache slots L.
"""

from __future__ import annotations

import torch
from torch import Tensor

from zoo.functional.decorator import semantic_op
from zoo.functional.tensors import positions_from


@semantic_op
def append(past: Tensor | None, new: Tensor) -> Tensor:
    """Append to a growing cache: B G P K and B G T K -> B G (P + T) K."""
    return new if past is None else torch.cat((past, new), 2)


@semantic_op
def write(past: Tensor, new: Tensor, start: Tensor) -> Tensor:
    """Overwrite the slots of a static cache from ``start`` on.

    past: B G L K, new: B G T K, start: B, each at most L - T -> B G L K.
    """
    slots = start[:, None] + positions_from(0, new.shape[2], start)  # B T
    return past.scatter(2, slots[:, None, :, None].expand(-1, new.shape[1], -1, new.shape[3]), new)
