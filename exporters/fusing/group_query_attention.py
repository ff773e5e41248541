"""A decoder's attention to its own tokens and their past as one operation with its cache.

GroupQueryAttention rotates queries and keys, appends keys and values to the cache, and attends.  It takes rows whose
tokens stand together at the front: how many there are follows from the mask, so that it knows nothing of left padding.
All attentions of a decoder have to be such, as all their caches have to agree on where a token stands.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import fx

from exporters.fusing.functions import Rotation, group_query_attention
from exporters.fusing.joining import join_heads, replace_heads, side_by_side
from exporters.fusing.rewriter import Rewriter, dtype_of
from exporters.targets import Target
from zoo import functional
from zoo.tracing.tracer import Meaning, size

OPERATION = "GroupQueryAttention"

WIDTH_MULTIPLE = 8
"""Of which number the width of a head is a multiple."""

ROTATED_MULTIPLE = 16
"""Of which number the width of a head and of its rotated part are multiples where the operation rotates them."""


class UnfitError(Exception):
    """An attention that the operation cannot do, and why."""


@dataclass(frozen=True)
class _Cached:
    """An attention with a cache: its result and its parts (queries, new keys and new values: B H T K).

    ``keys`` are the positions of all keys, which only a bias by position needs.
    """

    node: fx.Node
    call: Meaning
    new: tuple[fx.Node, fx.Node, fx.Node]
    past: tuple[fx.Node, fx.Node]
    mask: fx.Node
    keys: fx.Node
    window: int | None
    position_bias: fx.Node | None


def fuse_group_query_attention(rewriter: Rewriter, target: Target, context_length: int | None) -> str | None:
    """Put GroupQueryAttention in the place of a decoder's attentions; returns why not, where it cannot do one of them.

    Nothing is done, and nothing said, where there is no cache or the target does not have the operation.
    """
    if target.padding != "right":
        return None
    found = []
    for node, meaning in rewriter.meant(functional.attention):
        keys, values = (rewriter.meaning(part, functional.append) for part in meaning.args[1:3])
        if keys is None or values is None:
            continue
        try:
            found.append(_cached(rewriter, target, node, meaning, keys, values))
        except UnfitError as unfit:
            return f"{node.meta['path']}: {unfit}"
    biased = (attention for attention in found if attention.position_bias is not None)
    for positions, mask in {attention.keys: attention.mask for attention in biased}.items():
        rewriter.replace(positions, _packed_positions(rewriter, positions, mask))
    for attention in found:
        _replace(rewriter, attention, context_length)
    return None


def _cached(
    rewriter: Rewriter, target: Target, node: fx.Node, call: Meaning, keys: Meaning, values: Meaning
) -> _Cached:
    query, key, value, bias = call.args
    dtype = dtype_of(query)
    if not target.takes(OPERATION, dtype):
        raise UnfitError(f"{OPERATION} has no kernel for {str(dtype).removeprefix('torch.')}")
    width = key.meta["facts"][0].shape[-1]
    if width % WIDTH_MULTIPLE:
        raise UnfitError(f"heads are {width} wide, and it takes multiples of {WIDTH_MULTIPLE}")
    if key.meta["facts"] != value.meta["facts"]:
        raise UnfitError("keys and values are not of one width")
    seen = rewriter.meaning(bias, functional.attention_bias)
    mask, position_bias, _, key_positions = (None,) * 4 if seen is None else seen.args[:4]
    if seen is None or mask is None or not seen.kwargs["causal"]:
        raise UnfitError("rows are not causal with a mask of their own")
    if position_bias is not None and not target.biases_group_queries:
        raise UnfitError(f"scores have a bias by position, which {OPERATION} does not take on this target")
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
        heads=query.meta["facts"][0].shape[1],
        scale=attention.call.kwargs["scale"],
        window=attention.window,
        softcap=attention.call.kwargs.get("softcap"),
        sinks=attention.call.kwargs.get("sinks"),
        position_bias=_for_every_query(rewriter, attention),
        rotation=rotation,
    )
    mixed, key_so_far, value_so_far = (rewriter.take(node, results, index) for index in range(3))
    replace_heads(rewriter, node, mixed)
    rewriter.replace(key, key_so_far)
    rewriter.replace(value, value_so_far)


def _packed_positions(rewriter: Rewriter, keys: fx.Node, mask: fx.Node) -> fx.Node:
    """The positions of the keys in a cache where the tokens of each row stand together at the front: B S."""
    batch, length = (rewriter.insert(keys, size, mask, axis) for axis in (0, 1))
    places = rewriter.insert(keys, functional.positions_from, 0, length, mask)  # S
    return rewriter.insert(keys, "expand", rewriter.insert(keys, "unsqueeze", places, 0), batch, length)


def _for_every_query(rewriter: Rewriter, attention: _Cached) -> fx.Node | None:
    """The bias by position with a row for each query: the operation does not repeat it along that axis."""
    bias, query = rewriter.current(attention.position_bias), attention.call.args[0]
    if bias is None or bias.meta["facts"][0].shape[2] != 1:
        return bias
    length = rewriter.insert(attention.node, size, query, 2)
    return rewriter.insert(attention.node, "expand", bias, -1, -1, length, -1)


def _before_rotation(
    rewriter: Rewriter, attention: _Cached, context_length: int | None
) -> tuple[list[fx.Node], Rotation | None]:
    """Queries, keys and values as they are before a rotation that the operation can do; else as they are."""
    query, key, value = attention.new
    turned = [rewriter.meaning(part, functional.rotate) for part in (query, key)]
    rotations = [_rotation(rewriter, meaning, attention.mask, context_length) for meaning in turned]
    if rotations[0] is None or rotations[0] != rotations[1]:
        return [query, key, value], None
    return [*(meaning.args[0] for meaning in turned if meaning is not None), value], rotations[0]


def _rotation(
    rewriter: Rewriter, meaning: Meaning | None, mask: fx.Node, context_length: int | None
) -> Rotation | None:
    """A rotation by the number of tokens before, with angles that are known for all positions."""
    if meaning is None or context_length is None:
        return None
    x, positions, frequencies = meaning.args
    counted = rewriter.meaning(positions, functional.token_positions)
    if counted is None or counted.args[0] is not mask or not isinstance(frequencies, tuple):
        return None
    if x.meta["facts"][0].shape[-1] % ROTATED_MULTIPLE or meaning.kwargs["dimensions"] % ROTATED_MULTIPLE:
        return None
    return Rotation(frequencies, meaning.kwargs["amplitude"], meaning.kwargs["interleaved"], context_length)
