"""Linear layers of the same input as one product, and heads as linear layers give them: side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch.nn.functional as F
from torch import fx

from exporters.fusing.functions import joined_linear
from exporters.fusing.rewriter import Rewriter


def join(rewriter: Rewriter, linears: Sequence[fx.Node]) -> fx.Node | None:
    """One product with the weights of several linear layers, in front of the first of them.

    None where they are not linear layers of one input, or only some have biases.
    """
    if any(node.target is not F.linear for node in linears):
        return None
    given = [[*node.args, *node.kwargs.values()] for node in linears]
    inputs, weights, biases = zip(*[[*args, None][:3] for args in given], strict=True)
    if len(set(inputs)) > 1 or len({bias is None for bias in biases}) > 1:
        return None
    first = min(linears)
    path = first.meta["path"].rpartition(".")[0]
    present = [] if None in biases else [[*biases]]
    return rewriter.insert(first, joined_linear, inputs[0], [*weights], *present, path=path)


def join_heads(rewriter: Rewriter, parts: Sequence[fx.Node]) -> fx.Node | None:
    """Queries, keys and values, B H T K each, side by side as one product: B T (all H K).

    None where one of them is more than a linear layer of its own, or their layers do not join.
    """
    linears = {linear: None for linear in map(_linear_of, parts) if linear is not None}
    return join(rewriter, [*linears]) if len(linears) == len(parts) else None


def _linear_of(heads: fx.Node) -> fx.Node | None:
    """The linear layer whose result has been split into heads, or None."""
    if heads.target != "transpose" or heads.args[1:] != (1, 2):
        return None
    split: Any = heads.args[0]
    linear: Any = split.args[0] if split.target == "unflatten" else None
    return linear if linear is not None and linear.target is F.linear else None


def side_by_side(rewriter: Rewriter, before: fx.Node, heads: fx.Node) -> fx.Node:
    """B H T K -> B T (H K)."""
    return rewriter.insert(before, "flatten", rewriter.insert(before, "transpose", heads, 1, 2), 2)
