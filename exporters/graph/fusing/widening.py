"""Float16 products with float32 results, which do not overflow.

The last layer of a feed-forward or an attention may exceed the range of float16 (T5's do) while the residual stream is
float32.
"""

from __future__ import annotations

import operator

import torch
import torch.nn.functional as F

from exporters.graph.fusing.functions import wide_linear
from exporters.graph.fusing.joining import linear_arguments
from exporters.graph.fusing.rewriter import Rewriter, dtype_of

WIDENING = (operator.add, torch.add, "add", "to", "float")


def widen(rewriter: Rewriter) -> None:
    """Replace linear layers whose float16 results are only cast to float32 by products with float32 results."""
    for linear in rewriter.calls(F.linear):
        if dtype_of(linear) != torch.float16:
            continue
        passed, users = [], list(linear.users)
        while users and all(user.target is F.dropout for user in users):
            passed += users
            users = [user for dropout in users for user in dropout.users]
        if users and all(user.target in WIDENING and dtype_of(user) == torch.float32 for user in users):
            wide = rewriter.insert(linear, wide_linear, *linear_arguments(linear))
            for node in (linear, *passed):
                rewriter.replace(node, wide)
