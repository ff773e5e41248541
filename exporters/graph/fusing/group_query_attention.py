"""Fusion of a decoder's self-attention with its cache.

GroupQueryAttention rotates queries and keys, appends keys and values to the cache, and attends. It expects the tokens of
each row at the front and takes only their number from the mask, so it does not support left padding. Either all
attentions of a decoder are fused or none, as all caches must agree on the slot of each token.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import fx

from exporters.graph.fusing.functions import RotaryTables, group_query_attention
from exporters.graph.fusing.joining import for_every_query, join_heads, replace_heads, side_by_side
from exporters.graph.fusing.rewriter import Rewriter, dtype_of
from exporters.target.targets import Target
from zoo import functional
from zoo.ops.creation import size
from zoo.tracing.tracer import SemanticCall

OPERATION = "GroupQueryAttention"

WIDTH_MULTIPLE = 8
"""The supported head widths are multiples of this."""

ROTATED_MULTIPLE = 16
"""Rotation is supported if head width and rotated width are multiples of this."""


@dataclass(frozen=True)
class _Cached:
    """An attention with a cache: its result and its inputs (queries, new keys and new values: B H T K).

    ``keys`` are the positions of all keys, which only a positional bias needs.
    """

    node: fx.Node
    call: SemanticCall
    new: tuple[fx.Node, fx.Node, fx.Node]
    past: tuple[fx.Node, fx.Node]
    mask: fx.Node
    keys: fx.Node
    window: int | None
    position_bias: fx.Node | None


def fuse_group_query_attention(rewriter: Rewriter, target: Target, context_length: int | None) -> str | None:
    """Replace a decoder's attentions by GroupQueryAttention; return a reason if one of them does not allow it.

    Does nothing and returns None if the graph has no cache or the target lacks the operation.
    """
    if target.padding != "right":
        return None
    attentions = []
    for node, call in rewriter.semantic_calls(functional.attention):
        keys, values = (rewriter.semantic_call(part, functional.append) for part in call.args[1:3])
        if keys is None or values is None:
            continue
        cached = _cached(rewriter, target, node, call, keys, values)
        if isinstance(cached, str):
            return f"{node.meta['path']}: {cached}"
        attentions.append(cached)
    biased = (attention for attention in attentions if attention.position_bias is not None)
    for positions, mask in {attention.keys: attention.mask for attention in biased}.items():
        rewriter.replace(positions, _packed_positions(rewriter, positions, mask))
    for attention in attentions:
        _replace(rewriter, attention, context_length)
    return None


def _cached(
    rewriter: Rewriter,
    target: Target,
    node: fx.Node,
    call: SemanticCall,
    keys: SemanticCall,
    values: SemanticCall,
) -> _Cached | str:
    """The attention that an operation can replace, or the reason why none can."""
    query, key, value, bias = call.args
    dtype = dtype_of(query)
    if not target.takes(OPERATION, dtype):
        return f"{OPERATION} has no kernel for {str(dtype).removeprefix('torch.')}"
    width = key.meta["info"][0].shape[-1]
    if width % WIDTH_MULTIPLE:
        return f"the head width is {width}, and must be a multiple of {WIDTH_MULTIPLE}"
    if key.meta["info"] != value.meta["info"]:
        return "keys and values have different widths"
    seen = rewriter.semantic_call(bias, functional.attention_bias)
    mask, position_bias, _, key_positions = (None,) * 4 if seen is None else seen.args[:4]
    if seen is None or mask is None or not seen.kwargs["causal"]:
        return "attention is not causal with a padding mask"
    if seen.kwargs.get("last") is not None:
        return "the tokens of an image or of a prompt see each other in both directions"
    if seen.kwargs.get("chunk") is not None:
        return f"attention is limited to chunks, which {OPERATION} does not support"
    if position_bias is not None and not target.biases_group_queries:
        return f"scores have a positional bias, which {OPERATION} does not support on this target"
    return _Cached(
        node,
        call,
        (query, keys.args[1], values.args[1]),
        (keys.args[0], values.args[0]),
        mask,
        key_positions,
        seen.kwargs.get("window"),
        position_bias,
    )


def _replace(rewriter: Rewriter, attention: _Cached, context_length: int | None) -> None:
    node, (query, key, value, *_) = attention.node, attention.call.args
    parts, rotation = _before_rotation(rewriter, attention, context_length)
    joined = join_heads(rewriter, parts)
    results = rewriter.insert(
        node,
        group_query_attention,
        [side_by_side(rewriter, node, part) for part in parts] if joined is None else [joined],
        *attention.past,
        attention.mask,
        heads=query.meta["info"][0].shape[1],
        scale=attention.call.kwargs["scale"],
        window=attention.window,
        softcap=attention.call.kwargs.get("softcap"),
        sinks=attention.call.kwargs.get("sinks"),
        position_bias=for_every_query(rewriter, node, rewriter.current(attention.position_bias), query),
        rotation=rotation,
    )
    mixed, key_so_far, value_so_far = (rewriter.take(node, results, index) for index in range(3))
    replace_heads(rewriter, node, mixed)
    rewriter.replace(key, key_so_far)
    rewriter.replace(value, value_so_far)


def _packed_positions(rewriter: Rewriter, keys: fx.Node, mask: fx.Node) -> fx.Node:
    """Return the positions of the keys in a cache whose rows have their tokens at the front: B S."""
    batch, length = (rewriter.insert(keys, size, mask, axis) for axis in (0, 1))
    slots = rewriter.insert(keys, functional.positions_from, 0, length, mask)  # S
    return rewriter.insert(keys, "expand", rewriter.insert(keys, "unsqueeze", slots, 0), batch, length)


def _before_rotation(
    rewriter: Rewriter, attention: _Cached, context_length: int | None
) -> tuple[list[fx.Node], RotaryTables | None]:
    """Return queries, keys and values before rotation, and the rotation, if the operation supports it; otherwise
    unchanged, and None."""
    query, key, value = attention.new
    turned = [rewriter.semantic_call(part, functional.rotate) for part in (query, key)]
    rotations = [_rotation(rewriter, call, attention.mask, context_length) for call in turned]
    if rotations[0] is None or rotations[0] != rotations[1]:
        return [query, key, value], None
    return [*(call.args[0] for call in turned if call is not None), value], rotations[0]


def _rotation(
    rewriter: Rewriter, call: SemanticCall | None, mask: fx.Node, context_length: int | None
) -> RotaryTables | None:
    """Return the tables of a rotation by token position, if its angles are static; otherwise None."""
    if call is None or context_length is None:
        return None
    x, positions, frequencies = call.args
    counted = rewriter.semantic_call(positions, functional.token_positions)
    if counted is None or counted.args[0] is not mask or not isinstance(frequencies, tuple):
        return None
    if x.meta["info"][0].shape[-1] % ROTATED_MULTIPLE or call.kwargs["dimensions"] % ROTATED_MULTIPLE:
        return None
    return RotaryTables(frequencies, call.kwargs["amplitude"], call.kwargs["interleaved"], context_length)
