"""Fusion of attention into one operation: in encoders, in cross-attention, and with a growing cache."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

from torch import fx

from exporters.graph.fusing.functions import multi_head_attention
from exporters.graph.fusing.joining import for_every_query, join_heads, replace_heads, side_by_side
from exporters.graph.fusing.rewriter import Rewriter
from exporters.target.targets import Target
from zoo import functional

OPERATION = "MultiHeadAttention"


def fuse_multi_head_attention(rewriter: Rewriter, target: Target) -> None:
    """Replace every supported attention by MultiHeadAttention.

    Sinks, softcaps and shared key/value heads are not supported, nor is a bias computed from the cached keys, because the
    operation itself appends to the cache.
    """
    for node, call in rewriter.semantic_calls(functional.attention):
        query, key, value, bias = call.args
        info = query.meta["info"][0]
        heads = info.shape[1]
        keys, values = (rewriter.semantic_call(part, functional.append) for part in (key, value))
        cached = keys is not None and values is not None
        as_heads = "placeholder" in (key.op, value.op)
        uneven = (keys is None) != (values is None)
        uneven |= (cached or as_heads) and key.meta["info"] != value.meta["info"]
        special = any(call.kwargs.get(option) for option in ("softcap", "dropout"))
        special = special or call.kwargs.get("sinks") is not None
        shared = key.meta["info"][0].shape[1] != heads
        compared = cached and isinstance(bias, fx.Node) and _depends(bias, key)
        if not node.users or not target.takes(OPERATION, info.dtype):
            continue
        if uneven or special or shared or compared:
            continue
        mask, bias = _padding(rewriter, bias) if target.masks_keys else (None, bias)
        if bias is not None and not target.masks_keys:
            bias = for_every_query(rewriter, node, _four_axes(rewriter, node, bias), query)
        if bias is not None and not _fits(bias, query, key):
            continue
        past = []
        if keys is None or values is None:
            new = _projected(rewriter, node, (query, key, value))
        elif not target.appends_nothing and keys.args[1].meta["info"][0].shape[2] != info.shape[2]:
            cached, new = False, [side_by_side(rewriter, node, query), key, value]
        else:
            new = _projected(rewriter, node, (query, keys.args[1], values.args[1]))
            past = [keys.args[0], values.args[0]]
        mixed = rewriter.insert(
            node,
            multi_head_attention,
            *new,
            mask,
            bias if bias is None else _four_axes(rewriter, node, bias),
            *past,
            heads=heads,
            scale=call.kwargs["scale"],
        )
        if cached:
            mixed, key_so_far, value_so_far = (rewriter.take(node, mixed, index) for index in range(3))
            rewriter.replace(key, key_so_far)
            rewriter.replace(value, value_so_far)
        replace_heads(rewriter, node, mixed)


def _depends(node: fx.Node, on: fx.Node) -> bool:
    """Return whether a value is computed from another."""
    seen, following = set[fx.Node](), [node]
    while following:
        node_before = following.pop()
        if node_before is on:
            return True
        if node_before not in seen:
            seen.add(node_before)
            following += node_before.all_input_nodes
    return False


def _padding(rewriter: Rewriter, bias: Any) -> tuple[Any, Any]:
    """Return (mask, None) for a bias that only masks padding, otherwise (None, bias)."""
    call = rewriter.semantic_call(bias, functional.attention_bias)
    if call is None or call.kwargs["causal"]:
        return None, bias
    if any(call.kwargs.get(limit) is not None for limit in ("window", "groups")):
        return None, bias
    mask, position_bias, *_ = call.args
    return (None, bias) if position_bias is not None else (mask, None)


def _fits(bias: fx.Node, query: fx.Node, key: fx.Node) -> bool:
    """Return whether a bias covers all queries and keys: the operation broadcasts it only over rows and heads."""
    infos = [node.meta["info"][0] for node in (bias, query, key)]
    sizes = tuple(info.shape[2] for info in infos[1:])
    return bool(infos[0].shape[-2:] == sizes)


def _four_axes(rewriter: Rewriter, before: fx.Node, bias: fx.Node) -> fx.Node:
    """Return a bias with four axes: T S -> 1 1 T S."""
    while bias.meta["info"][0].ndim < 4:
        bias = rewriter.insert(before, "unsqueeze", bias, 0)
    return bias


def _projected(rewriter: Rewriter, before: fx.Node, parts: Sequence[fx.Node]) -> list[fx.Node]:
    """Return queries, keys and values, B H T K each, as B T (H K): parts of one product if their layers can be joined.

    Graph inputs are returned unchanged.
    """
    joined = join_heads(rewriter, parts)
    if joined is None:
        return [part if part.op == "placeholder" else side_by_side(rewriter, before, part) for part in parts]
    widths = [heads * width for _, heads, _, width in (part.meta["info"][0].shape for part in parts)]
    ends = [*itertools.accumulate(widths)]
    return [
        rewriter.insert(
            before, operator.getitem, joined, (..., slice(end - width, end)), path=joined.meta["path"]
        )
        for width, end in zip(widths, ends, strict=True)
    ]
