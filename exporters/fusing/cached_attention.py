"""A decoder's attention to its own tokens and their past as one operation with its cache.

GroupQueryAttention rotates queries and keys, appends keys and values to the cache, and attends.  It takes rows whose
tokens stand together at the front: how many there are follows from the mask, so that it knows nothing of left padding.
"""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import fx

from exporters.fusing.functions import Rotation, group_query_attention
from exporters.fusing.joining import join
from exporters.fusing.rewriter import Rewriter
from exporters.targets import Target
from zoo import functional
from zoo.tracing.tracer import Meaning

OPERATION = "GroupQueryAttention"


def fuse_cached_attention(rewriter: Rewriter, target: Target, context_length: int | None) -> None:
    """Put GroupQueryAttention in the place of every causal attention with a cache that it can do."""
    for node, meaning in rewriter.meant(functional.attention):
        query, key, value, bias = meaning.args
        facts = query.meta["facts"][0]
        seen = _seen(rewriter, bias)
        keys, values = (rewriter.meaning(part, functional.append) for part in (key, value))
        if target.padding != "right" or not target.takes(OPERATION, facts.dtype):
            continue
        if seen is None or keys is None or values is None or key.meta["facts"] != value.meta["facts"]:
            continue
        mask, window = seen
        heads, rotation = _before_rotation(rewriter, [query, keys.args[1]], mask, context_length)
        parts = [*heads, values.args[1]]
        results = rewriter.insert(
            node,
            group_query_attention,
            _packed(rewriter, parts) or [_merged(rewriter, node, part) for part in parts],
            keys.args[0],
            values.args[0],
            mask,
            heads=facts.shape[1],
            scale=meaning.kwargs["scale"],
            window=window,
            softcap=meaning.kwargs.get("softcap"),
            sinks=meaning.kwargs.get("sinks"),
            rotation=rotation,
        )
        mixed, key_so_far, value_so_far = (rewriter.take(node, results, index) for index in range(3))
        split = rewriter.insert(node, "unflatten", mixed, -1, (facts.shape[1], facts.shape[3]))
        rewriter.replace(node, rewriter.insert(node, "transpose", split, 1, 2))
        rewriter.replace(key, key_so_far)
        rewriter.replace(value, value_so_far)


def _seen(rewriter: Rewriter, bias: Any) -> tuple[fx.Node, int | None] | None:
    """The mask and the window of a causal bias that says nothing else, or None."""
    meaning = rewriter.meaning(bias, functional.attention_bias)
    if meaning is None or not meaning.kwargs["causal"]:
        return None
    mask, position_bias, *_ = meaning.args
    given = isinstance(mask, fx.Node) and mask.op == "placeholder" and position_bias is None
    return (mask, meaning.kwargs.get("window")) if given else None


def _before_rotation(
    rewriter: Rewriter, parts: list[fx.Node], mask: fx.Node, context_length: int | None
) -> tuple[list[fx.Node], Rotation | None]:
    """Queries and keys as they are before their rotation, where the operation can do that; else as they are."""
    meanings = [rewriter.meaning(part, functional.rotate) for part in parts]
    rotations = [_rotation(rewriter, meaning, mask, context_length) for meaning in meanings]
    if rotations[0] is None or rotations[0] != rotations[1]:
        return parts, None
    return [meaning.args[0] for meaning in meanings if meaning is not None], rotations[0]


def _rotation(
    rewriter: Rewriter, meaning: Meaning | None, mask: fx.Node, context_length: int | None
) -> Rotation | None:
    """A rotation by the number of tokens before, with angles that are known for all positions."""
    if meaning is None or context_length is None:
        return None
    _, positions, frequencies = meaning.args
    counted = rewriter.meaning(positions, functional.token_positions)
    if counted is None or counted.args[0] is not mask or not isinstance(frequencies, tuple):
        return None
    return Rotation(frequencies, meaning.kwargs["amplitude"], meaning.kwargs["interleaved"], context_length)


def _packed(rewriter: Rewriter, parts: list[fx.Node]) -> list[fx.Node] | None:
    """Queries, keys and values side by side as one product, where each is a linear layer and nothing more."""
    linears = [_linear_of(part) for part in parts]
    joined = None if None in linears else join(rewriter, linears)  # type: ignore[arg-type]
    return None if joined is None else [joined]


def _linear_of(heads: fx.Node) -> fx.Node | None:
    """The linear layer whose result has been split into heads, or None."""
    if heads.target != "transpose" or heads.args[1:] != (1, 2):
        return None
    split: Any = heads.args[0]
    linear: Any = split.args[0] if split.target == "unflatten" else None
    return linear if linear is not None and linear.target is F.linear else None


def _merged(rewriter: Rewriter, before: fx.Node, part: fx.Node) -> fx.Node:
    """B H T K -> B T (H K)."""
    return rewriter.insert(before, "flatten", rewriter.insert(before, "transpose", part, 1, 2), 2)
