"""Emitters of delta rules: LinearAttention for the gated rule, standard operations otherwise."""

from __future__ import annotations

from exporters.graph.emitters.delta_chunks import DeltaRule, emit_delta_rule, rows, rows_without_padding
from exporters.graph.emitters.linear_attention import INSIDE, linear_attention
from exporters.graph.emitters.registry import Call, Operand, emits
from exporters.graph.fusing.recurrences import OPERATION
from exporters.graph.values import Value
from zoo import functional
from zoo.functional.delta import CHUNK, delta_carry, delta_chunks, delta_step
from zoo.functional.generalized_delta import generalized_carry, generalized_chunks, generalized_step


@emits(functional.gated_delta_rule)
def _gated_delta_rule(
    call: Call,
    query: Operand,
    key: Operand,
    value: Operand,
    decay: Operand,
    beta: Operand,
    state: Operand | None,
    real: Operand | None,
) -> tuple[Value, Value]:
    if call.graph.target.takes(OPERATION, INSIDE):
        return linear_attention(call, query, key, value, decay, beta, state, real)
    heads, width, out = value.static(1), query.static(3), value.static(3)
    projected = (rows(call, x, heads // x.static(1)) for x in (query, key, value))
    parts = [*projected, *(rows_without_padding(call, gate, real) for gate in (decay, beta))]
    scanned = {
        "query": (CHUNK, width),
        "key": (CHUNK, width),
        "scores": (CHUNK, CHUNK),
        "values": (CHUNK, out),
        "reads": (CHUNK, width),
        "decay": (1, parts[3].width),
    }
    rule = DeltaRule(delta_step, delta_chunks, delta_carry, scanned)
    return emit_delta_rule(call, rule, parts, query, value, state)


@emits(functional.generalized_delta_rule)
def _generalized_delta_rule(
    call: Call,
    query: Operand,
    key: Operand,
    value: Operand,
    decay: Operand,
    recall: Operand,
    erase: Operand,
    state: Operand | None,
    real: Operand | None,
) -> tuple[Value, Value]:
    width, out = query.static(3), value.static(3)
    parts = [
        rows(call, query),
        rows_without_padding(call, key, real),
        rows(call, value),
        rows_without_padding(call, decay, real),
        rows(call, recall),
        rows_without_padding(call, erase, real),
    ]
    scanned = {
        "query": (CHUNK, width),
        "mixed": (CHUNK, out),
        "decay": (1, width),
        "erased": (width, width),
        "added": (width, out),
    }
    rule = DeltaRule(generalized_step, generalized_chunks, generalized_carry, scanned)
    return emit_delta_rule(call, rule, parts, query, value, state)
