"""Emitters of gated norms and of the gates of delta rules."""

from __future__ import annotations

from exporters.graph.builder import Dim
from exporters.graph.emitters.registry import Call, Operand, emits
from exporters.graph.fusing.functions import delta_gates, gated_norm
from exporters.graph.fusing.gates import DELTA_GATES, GATED_NORM
from exporters.graph.values import Value
from exporters.target.targets import CONTRIB


@emits(gated_norm)
def _gated_norm(
    call: Call, x: Operand, weight: Operand, gate: Operand, *, eps: float, activation: str
) -> Value:
    """The operation normalizes each part of a row that is as wide as the weights, so heads stay side by side."""
    graph, heads = call.graph, x.info[0].shape[-2]
    packed: list[Dim] = [*x.dims]
    if x.ndim > 3 and heads == x.info[1].shape[-2]:
        packed = [*x.dims[:-2], heads * x.static(-1)]
    parts = [graph.reshape(part.value, packed) for part in (x, gate)]
    normed: Value = call.op(
        GATED_NORM, parts[0], weight.value, parts[1], domain=CONTRIB, epsilon=eps, activation=activation
    )
    normed.dims = tuple(dim if isinstance(dim, int) else graph.symbols.name(dim) for dim in packed)
    normed.dtype = x.dtype
    return graph.reshape(normed, x.dims)


@emits(delta_gates)
def _delta_gates(
    call: Call, steps: Operand, bias: Operand, rates: Operand, update: Operand | None = None
) -> tuple[Value, ...]:
    inputs = [steps.value, bias.value, rates.value]
    if update is None:
        return (call.op(DELTA_GATES, *inputs, domain=CONTRIB),)
    results: tuple[Value, ...] = call.op(DELTA_GATES, *inputs, update.value, outputs=2, domain=CONTRIB)
    return results
