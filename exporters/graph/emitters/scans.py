"""A Scan along an axis of its inputs.

Transposes bring the axis to the front, where every runtime takes it: ONNX's reference evaluator has no other axes, and ONNX Runtime
transposes as well where one is given.
"""

from __future__ import annotations

from collections.abc import Sequence

from exporters.graph.emitters.registry import Call
from exporters.graph.values import Body, Value


def scan(
    call: Call, start: Value, parts: Sequence[Value], ranks: Sequence[int], axis: int, body: Body, rank: int
) -> tuple[Value, Value]:
    """The last state, and the results along the same axis: the parts have these ranks, and the results ``rank``."""
    moved = [
        call.op("Transpose", part, perm=[axis, *(each for each in range(of_part) if each != axis)])
        for part, of_part in zip(parts, ranks, strict=True)
    ]
    state, results = call.op("Scan", start, *moved, outputs=2, body=body, num_scan_inputs=len(moved))
    back = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
    return state, call.op("Transpose", results, perm=back)
