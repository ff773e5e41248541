"""Fusion into standard operations introduced in opset 23.

Attention supports keys and values of equal width without sinks or soft caps; unsupported calls remain unchanged.
"""

from __future__ import annotations

import torch
from torch import fx

from exporters.graph.fusing.functions import whole_attention, whole_rotation, whole_write
from exporters.graph.fusing.rewriter import Rewriter, dtype_of
from exporters.target.targets import Target
from zoo import functional
from zoo.tracing.tracer import SemanticCall

RECURRENCES = (
    functional.linear_attention,
    functional.selective_scan,
    functional.diagonal_recurrence,
    functional.gated_delta_rule,
    functional.generalized_delta_rule,
)
BESIDE = "no kernel where a recurrence runs beside it in the block"


def fuse_standard(rewriter: Rewriter, target: Target) -> list[str]:
    """Replace semantic calls by Attention, RotaryEmbedding and TensorScatter; return a reason for each that remains."""
    for node, call in rewriter.semantic_calls(functional.write):
        if target.takes("TensorScatter", dtype_of(node)):
            rewriter.replace(node, rewriter.insert(node, whole_write, *call.args))
    for node, call in rewriter.semantic_calls(functional.rotary_embedding):
        x, cos, _ = (part.meta["info"] for part in call.args)
        rows = all(x[run].shape[0] == cos[run].shape[0] for run in (0, 1))
        apart = not call.kwargs["interleaved"] or dtype_of(node) in target.interleaved
        if rows and apart and target.takes("RotaryEmbedding", dtype_of(node)):
            rewriter.replace(node, rewriter.insert(node, whole_rotation, *call.args, **call.kwargs))
    unfit: dict[str, str] = {}
    recurrent = {_block(node) for function in RECURRENCES for node in rewriter.calls(function)}
    for node, call in rewriter.semantic_calls(functional.attention):
        if not node.users or "Attention" not in target.operations:
            continue
        beside = _block(node) in recurrent and not target.attention_beside_scans
        if reason := BESIDE if beside else _unfit(call, target, dtype_of(node)):
            unfit.setdefault(reason, f"Attention: {node.meta['path']}: {reason}")
            continue
        rewriter.replace(node, rewriter.insert(node, whole_attention, *call.args, scale=call.kwargs["scale"]))
    return [*unfit.values()]


def _block(node: fx.Node) -> str:
    """Return the path of the block that a call belongs to."""
    path: str = node.meta["path"]
    return ".".join(path.split(".")[:3])


def _unfit(call: SemanticCall, target: Target, dtype: torch.dtype) -> str | None:
    """Return the reason why a target's Attention does not support a call; None if it does."""
    query, key, value, _ = call.args
    width, widths = query.meta["info"][0].shape[-1], target.attention_widths
    if not target.takes("Attention", dtype):
        return f"target {target.name} has no kernel in {str(dtype).removeprefix('torch.')}"
    if call.kwargs.get("sinks") is not None:
        return "the operation does not support sinks"
    if call.kwargs.get("softcap") is not None:
        return "no kernel supports a softcap"
    if key.meta["info"] != value.meta["info"]:
        return "keys and values have different widths"
    if width not in widths:
        return f"heads are {width} wide, and kernels take {widths.start} to {widths.stop - 1}"
    return None
