"""How far the tokens of a causal stack see ahead."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Reach:
    """last: B T, the position of the last token that each sees.  unlimited: B T, the tokens that windows do not limit, or None."""

    last: Tensor
    unlimited: Tensor | None = None
