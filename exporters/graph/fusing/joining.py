"""Inputs of fused attention: linear layers joined into one product, concatenated heads, and a bias per query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch.nn.functional as F
from torch import fx

from exporters.graph.fusing.functions import joined_linear
from exporters.graph.fusing.rewriter import Rewriter
from zoo.ops.creation import size


def linear_arguments(linear: fx.Node) -> tuple[Any, Any, Any]:
    """Return the input, the weight, and the bias or None of a linear layer."""
    x, weight, bias = [*linear.args, *linear.kwargs.values(), None][:3]
    return x, weight, bias


def join_heads(rewriter: Rewriter, parts: Sequence[fx.Node]) -> fx.Node | None:
    """Return queries, keys and values, B H T K each, as one product in front of the first of them: B T (all H K).

    None if one of them is not a plain linear layer, if their inputs differ, or if only some have biases.
    """
    linears = {linear: None for linear in map(_linear_of, parts) if linear is not None}
    if len(linears) < len(parts):
        return None
    inputs, weights, biases = zip(*map(linear_arguments, linears), strict=True)
    if len(set(inputs)) > 1 or len({bias is None for bias in biases}) > 1:
        return None
    first = min(linears)
    path = first.meta["path"].rpartition(".")[0]
    present = [] if None in biases else [[*biases]]
    return rewriter.insert(first, joined_linear, inputs[0], [*weights], *present, path=path)


def _linear_of(heads: fx.Node) -> fx.Node | None:
    """Return the linear layer whose result is split into these heads, or None."""
    if heads.target != "transpose" or heads.args[1:] != (1, 2):
        return None
    split: Any = heads.args[0]
    linear: Any = split.args[0] if split.target == "unflatten" else None
    return linear if linear is not None and linear.target is F.linear else None


def side_by_side(rewriter: Rewriter, before: fx.Node, heads: fx.Node) -> fx.Node:
    """Return heads concatenated: B H T K -> B T (H K)."""
    return rewriter.insert(before, "flatten", rewriter.insert(before, "transpose", heads, 1, 2), 2)


def for_every_query(
    rewriter: Rewriter, before: fx.Node, bias: fx.Node | None, query: fx.Node
) -> fx.Node | None:
    """Return a bias, B H T S, expanded to one row per query: fused attention does not broadcast along that axis."""
    if bias is None or bias.meta["info"][0].shape[2] != 1:
        return bias
    length = rewriter.insert(before, size, query, 2)
    return rewriter.insert(before, "expand", bias, -1, -1, length, -1)


def replace_heads(rewriter: Rewriter, old: fx.Node, mixed: fx.Node) -> None:
    """Replace heads, B H T K, by concatenated ones, B T (H K)."""
    _, heads, _, width = old.meta["info"][0].shape
    split = rewriter.insert(old, "unflatten", mixed, -1, (heads, width))
    rewriter.replace(old, rewriter.insert(old, "transpose", split, 1, 2))
