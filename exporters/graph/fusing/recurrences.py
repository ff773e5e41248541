"""Recurrences that LinearAttention does not compute well, with the reasons."""

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
"""Why a Scan computes these, although the operation could."""


def unfused_recurrences(rewriter: Rewriter, target: Target) -> list[str]:
    """The reasons, each for the first layer that it holds for; none for a target without the operation."""
    if not target.takes(OPERATION, torch.float32):
        return []
    found = ((next(rewriter.calls(function), None), reason) for function, reason in REASONS.items())
    return [f"{OPERATION}: {node.meta['path']}: {reason}" for node, reason in found if node is not None]
