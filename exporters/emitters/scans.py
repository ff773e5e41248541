"""A Scan along an axis of its inputs, whose body reads nothing that is computed outside it: OpenVINO's Scan takes no such values.

Transposes bring the axis to the front, where every runtime takes it: ONNX's reference evaluator has no other axes, and ONNX Runtime
transposes as well where one is given.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from exporters.emitters.registry import Call
from exporters.graph import Body, Node, Value


def padded(call: Call, x: Value, rank: int, axis: int, added: Value, filler: Value | None = None) -> Value:
    """A tensor with more values at the end of an axis.

    The amounts of all axes are stated: ONNX Runtime moves transpositions through a Pad of chosen axes without regard to these.
    """
    ints = call.graph.ints
    after = [ints(*[0] * (rank - 1 - axis))] if axis < rank - 1 else []
    amounts = call.op("Concat", ints(*[0] * (rank + axis)), added, *after, axis=0)
    result: Value = call.op("Pad", x, amounts, filler)
    return result


Given = Sequence[tuple[Value, torch.dtype]]
"""Values that every step reads, with their dtypes."""


def scan_with(
    call: Call, start: Value, given: Given, parts: Sequence[Value], body: Body
) -> tuple[Value, ...]:
    """The last state, and the results.

    The inputs of the body are the state, the given values, and a slice of each part; given values are states that stay as they are.
    """
    results = len(body.outputs) - 1
    for place, same in enumerate(body.inputs[1 : 1 + len(given)], 1):
        kept = Value(f"{same.name}/kept", None, same.dtype)
        body.nodes.append(Node("Identity", "", (same,), [kept], {}, kept.name))
        body.outputs.insert(place, kept)
    found = call.op(
        "Scan", start, *(value for value, _ in given), *parts,
        outputs=len(body.outputs), body=body, num_scan_inputs=len(parts),
    )  # fmt: skip
    every = found if isinstance(found, tuple) else (found,)
    return every[0], *every[len(every) - results :]


def scan(
    call: Call,
    start: Value,
    parts: Sequence[Value],
    ranks: Sequence[int],
    axis: int,
    body: Body,
    rank: int,
    given: Given = (),
) -> tuple[Value, Value]:
    """The last state, and the results along the same axis: the parts have these ranks, and the results ``rank``."""
    moved = [
        call.op("Transpose", part, perm=[axis, *(each for each in range(of_part) if each != axis)])
        for part, of_part in zip(parts, ranks, strict=True)
    ]
    state, results = scan_with(call, start, given, moved, body)
    back = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
    return state, call.op("Transpose", results, perm=back)
