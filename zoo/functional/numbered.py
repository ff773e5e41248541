"""Choice of vectors by the numbers of words and labels.

Shapes: batch B, tokens T, width D.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from zoo.functional.decorator import semantic_op
from zoo.functional.tensors import positions_from

TOKENS_PER_LABEL = 8
"""The tokens for each label that traces and costs count with, where token ids have no values: a size that nothing else in a graph has."""


@semantic_op
def most_numbered(numbers: Tensor) -> int:
    """The largest of the numbers of tokens, which count from 1, in a batch; at most the number of tokens, which it is on meta."""
    return numbers.shape[1] if numbers.is_meta else int(numbers.max())


def numbered(x: Tensor, numbers: Tensor, count: int) -> Tensor:
    """The vectors of the tokens with the numbers from 1 to ``count``, zeros for numbers that no token has: B T D, B T -> B count D."""
    chosen = positions_from(1, count, x)[None, :, None] == numbers[:, None]  # B count T
    return chosen.to(x.dtype) @ x


def taken(x: Tensor, places: Tensor) -> Tensor:
    """The vectors at some places of each row: B T D, B N -> B N D."""
    rows = positions_from(0, x.shape[0], x)[:, None] * x.shape[1]
    return F.embedding(places + rows, x.flatten(0, 1))
