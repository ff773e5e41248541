"""Mixtures of experts: com.microsoft's MoE or QMoE if the target has them, otherwise a loop over the experts.

All forms read only the matrices of the chosen experts, except on targets with static shapes, which read every expert.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from exporters.graph.emitters.every_expert import every_expert
from exporters.graph.emitters.expert_loop import expert_loop
from exporters.graph.emitters.expert_matrices import codes
from exporters.graph.emitters.mixture_call import MixtureCall, operands
from exporters.graph.emitters.products import ACCURACY_LEVEL
from exporters.graph.emitters.registry import Call, Operand, emits
from exporters.graph.fusing.mixtures import activation_attributes, expert_mixture
from exporters.graph.values import Value
from exporters.target.mxfp4_experts import MXFP4
from exporters.target.targets import CONTRIB


@emits(expert_mixture)
def _expert_mixture(
    call: Call,
    x: Operand,
    weights: Operand,
    chosen: Operand,
    into: Sequence[Any],
    down: Any,
    inner: nn.Module,
    *,
    logits: Operand | None,
    total: float | None,
    of_input: bool,
) -> Value:
    experts = MixtureCall(
        call, x, weights, chosen, logits, total, operands(into), operands([down])[0], inner, of_input
    )
    adapted = any(matrix.weight.value.name in call.graph.adapted for matrix in (*experts.into, experts.down))
    activation = None if of_input or adapted else activation_attributes(inner)
    quantized = experts.blocks is not None
    if activation is None or not call.graph.target.takes("QMoE" if quantized else "MoE", x.dtype):
        return every_expert(experts) if call.graph.target.static_shapes else expert_loop(experts)
    return (_qmoe if quantized else _moe)(experts, activation)


def _moe(experts: MixtureCall, activation: Mapping[str, Any]) -> Value:
    """MoE takes the experts with the highest logits and weights them by the softmax of these.

    Each part of a chosen expert has the expert's logit, so the weights of a part are divided by their sum times the number of
    parts.
    """
    parts = experts.parts
    if experts.parts == 1 and experts.logits is not None:
        logits = experts.rows(experts.logits)
    else:
        logits = _chosen_logits(experts)
    if parts > 1:
        logits = experts.call.op("Concat", *[logits] * parts, axis=-1)
    mixed: Value = experts.call.op(
        "MoE", experts.x.value, logits, experts.first_weight(), experts.first_bias(), experts.second_weight(),
        experts.second_bias(),
        domain=CONTRIB, k=parts * experts.choices, normalize_routing_weights=1, **activation,
    )  # fmt: skip
    return _times_total(experts, mixed, parts)


def _chosen_logits(experts: MixtureCall) -> Value:
    """The logits of the chosen experts, R E, with the lowest number for all others, so that no other ties with them.

    Logarithms of weights as logits give the weights divided by their sum. Weights of 0 become the smallest positive number
    of the dtype: in float16 a subnormal one, because normal ones end at 6e-5.
    """
    call, dtype = experts.call, experts.dtype
    limits = torch.finfo(dtype)
    if experts.logits is not None:
        logits = call.op("GatherElements", experts.logits.value, experts.chosen.value, axis=-1)
        return experts.per_expert(logits, limits.min)
    least = limits.tiny * limits.eps if dtype == torch.float16 else limits.tiny
    positive = call.op("Max", experts.weights.value, call.graph.constant(least, dtype))
    return experts.per_expert(call.op("Log", positive), limits.min)


def _qmoe(experts: MixtureCall, activation: Mapping[str, Any]) -> Value:
    """QMoE takes logits, as MoE does, or the weights of all experts, with 0 for experts that are not chosen.

    For floats it also takes one factor per expert; checkpoints have all of it in their exponents.
    """
    call, blocks, down = experts.call, experts.blocks, experts.down
    assert blocks is not None
    weighed = experts.logits is None and call.graph.target.weighs_experts
    if weighed:
        scores = experts.per_expert(experts.weights.value, 0.0)
    else:
        scores = _chosen_logits(experts) if experts.logits is None else experts.rows(experts.logits)
    form: dict[str, Any] = {"accuracy_level": ACCURACY_LEVEL, "weights_prepacked": 0}
    factors: list[Value] = []
    if blocks.floats:
        form = {"quant_type": MXFP4}
        factors = [call.graph.constant([1.0] * experts.count, torch.float32)] * 2
    rest = [*[None] * 6, scores if weighed else None, *factors] if weighed or factors else []
    mixed: Value = call.op(
        "QMoE", experts.x.value, scores, *codes(call, experts.gate_first, blocks), experts.first_bias(),
        *codes(call, [down], blocks), down.bias_value, *rest,
        domain=CONTRIB, k=experts.choices, normalize_routing_weights=int(not weighed),
        expert_weight_bits=blocks.bits, block_size=blocks.size, **form, **activation,
    )  # fmt: skip
    return mixed if weighed else _times_total(experts, mixed, 1)


def _times_total(experts: MixtureCall, mixed: Value, parts: int) -> Value:
    """Multiply a mixture of normalized weights by the true sum of the weights and the number of ``parts``: B T D."""
    call, total = experts.call, experts.total
    if total is None:
        mixed = call.op(
            "Mul", mixed, call.op("ReduceSum", experts.weights.value, call.graph.ints(-1), keepdims=1)
        )
    factor = parts * (1.0 if total is None else total)
    if factor == 1.0:
        return mixed
    scaled: Value = call.op("Mul", mixed, call.graph.constant(factor, experts.dtype))
    return scaled
