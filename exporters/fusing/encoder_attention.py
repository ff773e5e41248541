"""Attention without a cache of its own tokens as one operation: an encoder's, and a decoder's to its encoder."""

from __future__ import annotations

from typing import Any

from torch import fx

from exporters.fusing.functions import multi_head_attention
from exporters.fusing.rewriter import Rewriter
from exporters.targets import Target
from zoo import functional

OPERATION = "MultiHeadAttention"


def fuse_encoder_attention(rewriter: Rewriter, target: Target) -> None:
    """Put MultiHeadAttention in the place of every attention without a cache that it can do.

    It knows no sinks, no softcaps, and no heads that share keys.
    """
    for node, meaning in rewriter.meant(functional.attention):
        query, key, value, bias = meaning.args
        facts = query.meta["facts"][0]
        heads = facts.shape[1]
        cached = any(rewriter.meaning(part, functional.append) for part in (key, value))
        special = any(meaning.kwargs.get(option) for option in ("softcap", "dropout"))
        special = special or meaning.kwargs.get("sinks") is not None
        shared = key.meta["facts"][0].shape[1] != heads
        if not node.users or not target.takes(OPERATION, facts.dtype) or cached or special or shared:
            continue
        mask, bias = _padding(rewriter, bias)
        if bias is not None and not _fits(bias, query, key):
            continue
        mixed = rewriter.insert(
            node,
            multi_head_attention,
            *(_side_by_side(rewriter, node, part) for part in (query, key, value)),
            mask,
            bias,
            heads=heads,
            scale=meaning.kwargs["scale"],
        )
        width = value.meta["facts"][0].shape[3]
        split = rewriter.insert(node, "unflatten", mixed, -1, (heads, width))
        rewriter.replace(node, rewriter.insert(node, "transpose", split, 1, 2))


def _padding(rewriter: Rewriter, bias: Any) -> tuple[Any, Any]:
    """The mask of a bias that only hides padding, and no bias; else no mask, and the bias."""
    meaning = rewriter.meaning(bias, functional.attention_bias)
    if meaning is None or meaning.kwargs["causal"] or meaning.kwargs.get("window") is not None:
        return None, bias
    mask, position_bias, *_ = meaning.args
    return (None, bias) if position_bias is not None else (mask, None)


def _fits(bias: fx.Node, query: fx.Node, key: fx.Node) -> bool:
    """Whether a bias has all queries and keys: the operation repeats it for rows and heads alone."""
    facts = [node.meta["facts"][0] for node in (bias, query, key)]
    sizes = tuple(each.shape[2] for each in facts[1:])
    return bool(facts[0].ndim == 4 and facts[0].shape[2:] == sizes)


def _side_by_side(rewriter: Rewriter, before: fx.Node, part: fx.Node) -> fx.Node:
    """B H T K -> B T (H K), or as it is where it comes from outside."""
    if part.op == "placeholder":
        return part
    return rewriter.insert(before, "flatten", rewriter.insert(before, "transpose", part, 1, 2), 2)
