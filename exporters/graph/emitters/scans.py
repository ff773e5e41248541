"""A Scan along an axis of its inputs.

Transposes bring the axis to the front, because not every runtime takes another: ONNX's reference evaluator does not, and ONNX
Runtime itself transposes.
"""

from __future__ import annotations

from collections.abc import Sequence

from exporters.graph.emitters.registry import Call
from exporters.graph.values import Body, Value


def scan(
    call: Call, start: Value, parts: Sequence[Value], ranks: Sequence[int], axis: int, body: Body, rank: int
) -> tuple[Value, Value]:
    """Return the last state, and the results along the same axis, with ``rank`` axes; ``ranks``: the ranks of ``parts``."""
    moved = [
        call.op("Transpose", part, perm=[axis, *(other for other in range(of_part) if other != axis)])
        for part, of_part in zip(parts, ranks, strict=True)
    ]
    state, results = call.op("Scan", start, *moved, outputs=2, body=body, num_scan_inputs=len(moved))
    back = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
    return state, call.op("Transpose", results, perm=back)
