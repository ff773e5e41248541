"""Fusion of a mixture of experts into one operation: the weighted sum of each token's experts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx, nn

from exporters.graph.fusing.functions import entry
from exporters.graph.fusing.rewriter import Rewriter, dtype_of
from exporters.graph.quantization.scheme import Quantization
from exporters.target.targets import Target
from zoo import functional
from zoo.ops import TensorInfo
from zoo.ops.tokens import separate
from zoo.tracing.tracer import SemanticCall


def expert_mixture(
    x: Any,
    weights: Any,
    experts: Any,
    into: Sequence[Any],
    down: Any,
    inner: nn.Module,
    *,
    logits: Any,
    total: float | None,
    of_input: bool = False,
) -> Any:
    """:func:`zoo.functional.mixture_of_experts`; ``total`` is the sum of each token's weights, if known.

    ``logits``: B T E, if the weights are ``total`` times the softmax of the highest logits; otherwise None.
    """
    raise NotImplementedError


@entry(expert_mixture, separate)
def _expert_mixture(x: TensorInfo, *args: Any, **options: Any) -> TensorInfo:
    return x


def fuse_mixtures(rewriter: Rewriter, target: Target) -> list[str]:
    """Replace every mixture of experts by one operation.

    Its emitter chooses between an operation of the target and a loop over the experts in standard ONNX. Returns a reason
    for each mixture that cannot use the target's operation.
    """
    unfit: dict[str, str] = {}
    for node, call in rewriter.semantic_calls(functional.mixture_of_experts):
        inner, of_input = call.args[5], call.kwargs["of_input"]
        if (of_input or activation_attributes(inner) is None) and target.takes("MoE", dtype_of(node)):
            words = "experts whose input is weighted" if of_input else _words(inner)
            unfit.setdefault(words, f"MoE: {node.meta['path']}: {words}")
        x, weights, experts, *_ = call.args
        routing = rewriter.semantic_call(_uncast(weights), functional.routing_weights)
        normalized = routing is not None and routing.kwargs["normalize"]
        total = float(routing.kwargs["scale"]) if routing is not None and normalized else None
        logits = (
            _logits(rewriter, routing, experts, dtype_of(x)) if routing is not None and normalized else None
        )
        mixed = rewriter.insert(
            node, expert_mixture, *call.args, logits=logits, total=total, of_input=of_input
        )
        rewriter.replace(node, mixed)
    return [*unfit.values()]


def _words(inner: Any) -> str:
    """A description of experts that MoE does not compute, by their distinguishing features."""
    name = inner.activation_name
    if not inner.gated:
        return f"experts with activation {name}"
    if inner.multiplier != 1.0:
        return "gated experts with a multiplier of the gate"
    if inner.deviations is not None:
        return "gated experts with sparsity"
    return f"gated experts with activation {name}"


def unquantized_mixtures(graph: fx.Graph, quantization: Quantization) -> list[str]:
    """The reason for each mixture of a fused graph whose experts stay unquantized: no block size divides their widths."""
    reasons = []
    for node in graph.nodes:
        if node.target is not expert_mixture:
            continue
        weight = node.args[4][0]
        _, rows, width = weight.meta["info"][0].shape
        if quantization.of((str(weight.target),), weight.meta["info"][0].shape) is None:
            reasons.append(
                f"QMoE: {node.meta['path']}: no block divides the widths {rows} and {width} of experts"
            )
    return reasons


def _logits(
    rewriter: Rewriter, routing: SemanticCall, experts: fx.Node, dtype: torch.dtype
) -> fx.Node | None:
    """The logits of all experts in a dtype, if routing chooses by logits and weights by their softmax."""
    scores = routing.args[0]
    selection = rewriter.semantic_call(experts, functional.select_experts)
    if scores.target != "softmax" or selection is None or selection.kwargs["groups"] is not None:
        return None
    if selection.args[0] is not scores.args[0]:
        return None
    logits = _uncast(scores.args[0])
    return logits if dtype_of(logits) == dtype else None


def _uncast(node: fx.Node) -> fx.Node:
    """The tensor before its casts."""
    while node.target == "to":
        node = node.args[0]  # type: ignore[assignment]
    return node


GATES = {"silu": 1.0, "quick_gelu": 1.702}
"""The factor of the sigmoid in gates: x * sigmoid(factor * x)."""

PLAIN = frozenset({"relu", "silu", "identity"})
"""The activations of experts without a gate that MoE computes."""


def activation_attributes(inner: Any) -> dict[str, Any] | None:
    """The attributes of com.microsoft's MoE for the computation between an expert's layers; None if it has none."""
    if not inner.gated:
        return {"activation_type": inner.activation_name} if inner.activation_name in PLAIN else None
    if inner.deviations is None and inner.activation_name in GATES and inner.multiplier == 1.0:
        limit = {} if inner.limit is None else {"swiglu_limit": inner.limit}
        factor, offset = GATES[inner.activation_name], inner.up_offset or 0.0
        return {"activation_type": "swiglu", "swiglu_fusion": 1, "activation_alpha": factor,
                "activation_beta": offset, **limit}  # fmt: skip
    return None
