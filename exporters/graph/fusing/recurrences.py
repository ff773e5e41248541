"""Recurrences for which LinearAttention is not used, with the reasons."""

from __future__ import annotations

import torch

from exporters.graph.fusing.rewriter import Rewriter
from exporters.target.targets import Target
from zoo import functional

OPERATION = "LinearAttention"

REASONS = {
    functional.generalized_delta_rule: "it erases along the key that it recalls by",
    functional.selective_scan: "it takes one decay per channel and state of every token, which would all be in memory",
    functional.diagonal_recurrence: "it takes longer for heads of width 1 than a Scan over tokens",
}
"""The reason for a Scan instead of the operation, by function."""


def unfused_recurrences(rewriter: Rewriter, target: Target) -> list[str]:
    """The reasons that apply, each with the first layer concerned; empty for a target without the operation."""
    if not target.takes(OPERATION, torch.float32):
        return []
    calls = ((next(rewriter.calls(function), None), reason) for function, reason in REASONS.items())
    return [f"{OPERATION}: {node.meta['path']}: {reason}" for node, reason in calls if node is not None]
