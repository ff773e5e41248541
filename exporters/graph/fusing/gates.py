"""Fusion of gates: a norm multiplied by an activation, and the decay and update rate of a delta rule.

Each is one kernel on a GPU instead of three to seven. On the CPU, ONNX Runtime 1.31's kernels are slower than the operations that they
replace: 26 and 2 times for 512 tokens.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx

from exporters.graph.fusing.functions import delta_gates, gated_norm
from exporters.graph.fusing.norms import norm_arguments
from exporters.graph.fusing.rewriter import Rewriter, dtype_of
from exporters.target.targets import Target
from zoo import functional

GATED_NORM, DELTA_GATES = "GatedRMSNorm", "LinearAttentionGate"

ACTIVATIONS = {F.silu: "silu", torch.sigmoid: "sigmoid"}
"""The names of the activations of a gate."""


def fuse_gated_norms(rewriter: Rewriter, target: Target) -> None:
    """Fuse every norm with weights, times an activation of a tensor of its shape."""
    for node in rewriter.calls(operator.mul):
        parts: dict[Any, Any] = {part.target: part for part in node.args if isinstance(part, fx.Node)}
        activation = next((part for part in parts.values() if part.target in ACTIVATIONS), None)
        norm = parts.get(F.rms_norm)
        if norm is None or activation is None:
            continue
        x, shape, weight, _, eps = norm_arguments(norm)
        gate = activation.args[0]
        alike = x.meta["info"] == gate.meta["info"] == node.meta["info"]
        if not alike or weight is None or len(shape) > 1 or dtype_of(weight) != dtype_of(x):
            continue
        if target.takes(GATED_NORM, dtype_of(x)):
            name = ACTIVATIONS[activation.target]
            rewriter.replace(
                node, rewriter.insert(node, gated_norm, x, weight, gate, eps=eps, activation=name)
            )


def fuse_delta_gates(rewriter: Rewriter, target: Target) -> None:
    """Fuse the decay of every delta rule with one decay per head, and its update rate if that has the same shape and dtype."""
    if not target.takes(DELTA_GATES, torch.float32):
        return
    for rule in rewriter.calls(functional.gated_delta_rule):
        decay: Any
        update: Any
        decay, update = (_before_transpose(part) for part in rule.args[3:5])
        gates = _decay(decay)
        if gates is None:
            continue
        steps, bias, rates = gates
        first_user = min([*decay.users, *update.users])
        rated = (
            update.target is torch.sigmoid
            and update.args[0].meta["info"] == steps.meta["info"]
            and update.args[0] < first_user
        )
        results = rewriter.insert(
            first_user if rated else decay, delta_gates, steps, bias, rates, update.args[0] if rated else None
        )
        rewriter.replace(decay, rewriter.take(first_user if rated else decay, results, 0))
        if rated:
            rewriter.replace(update, rewriter.take(first_user, results, 1))


def _before_transpose(node: Any) -> Any:
    """B H T -> B T H."""
    return node.args[0] if node.target == "transpose" and set(node.args[1:]) == {1, 2} else node


def _decay(node: Any) -> tuple[Any, Any, Any] | None:
    """The steps, their biases and the rates of ``rates * softplus(steps + bias)``, B T H, H and H in float32; None for others."""
    if node.target is not operator.mul:
        return None
    parts: list[Any] = [part for part in node.args if isinstance(part, fx.Node)]
    softplus = next((part for part in parts if part.target is F.softplus), None)
    if (
        softplus is None
        or softplus.args[1:]
        or softplus.kwargs
        or softplus.args[0].target is not operator.add
    ):
        return None
    rates = next((part for part in parts if part is not softplus), None)
    steps, bias = softplus.args[0].args
    nodes: list[Any] = [part for part in (steps, bias, rates) if isinstance(part, fx.Node)]
    if len(nodes) < 3 or any(dtype_of(part) != torch.float32 for part in nodes):
        return None
    shape, *vectors = (part.meta["info"][0].shape for part in nodes)
    one_per_head = len(shape) == 3 and vectors == [shape[-1:]] * 2
    return (steps, bias, rates) if one_per_head and steps.meta["info"] == node.meta["info"] else None
