"""A Scan along an axis of its inputs, whose body reads nothing that is computed outside it: OpenVINO's Scan takes no such values.

Transposes bring the axis to the front, because not every runtime takes another: ONNX's reference evaluator does not, and ONNX
Runtime itself transposes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from exporters.graph.emitters.registry import Call
from exporters.graph.values import Body, Node, Value


def padded(call: Call, x: Value, rank: int, axis: int, added: Value, filler: Value | None = None) -> Value:
    """Append values at the end of an axis of a tensor.

    The amounts of all axes are stated: ONNX Runtime moves transpositions through a Pad of chosen axes without regard to these.
    """
    ints = call.graph.ints
    after = [ints(*[0] * (rank - 1 - axis))] if axis < rank - 1 else []
    amounts = call.op("Concat", ints(*[0] * (rank + axis)), added, *after, axis=0)
    result: Value = call.op("Pad", x, amounts, filler)
    return result


Common = Sequence[tuple[Value, torch.dtype]]
"""Values that every step reads, with their dtypes."""


def scan_with(
    call: Call, start: Value, common: Common, parts: Sequence[Value], body: Body
) -> tuple[Value, ...]:
    """Return the last state and the results.

    The inputs of the body are the state, the common values, and a slice of each part; common values are states that stay as they are.
    """
    results = len(body.outputs) - 1
    for index, same in enumerate(body.inputs[1 : 1 + len(common)], 1):
        kept = Value(f"{same.name}/kept", None, same.dtype)
        body.nodes.append(Node("Identity", "", (same,), [kept], {}, kept.name))
        body.outputs.insert(index, kept)
    scanned = call.op(
        "Scan", start, *(value for value, _ in common), *parts,
        outputs=len(body.outputs), body=body, num_scan_inputs=len(parts),
    )  # fmt: skip
    every = scanned if isinstance(scanned, tuple) else (scanned,)
    return every[0], *every[len(every) - results :]


def scan(
    call: Call,
    start: Value,
    parts: Sequence[Value],
    ranks: Sequence[int],
    axis: int,
    body: Body,
    rank: int,
    common: Common = (),
) -> tuple[Value, Value]:
    """Return the last state, and the results along the same axis, with ``rank`` axes; ``ranks``: the ranks of ``parts``."""
    moved = [
        call.op("Transpose", part, perm=[axis, *(other for other in range(of_part) if other != axis)])
        for part, of_part in zip(parts, ranks, strict=True)
    ]
    state, results = scan_with(call, start, common, moved, body)
    back = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
    return state, call.op("Transpose", results, perm=back)
