"""Fusion into the operations that standard ONNX has since opset 23.

Attention supports keys and values of equal width without sinks; unsupported calls remain unchanged.
"""

from __future__ import annotations

from exporters.fusing.functions import whole_attention, whole_rotation, whole_write
from exporters.fusing.rewriter import Rewriter, dtype_of
from exporters.targets import Target
from zoo import functional
from zoo.tracing.tracer import SemanticCall


def fuse_standard(rewriter: Rewriter, target: Target) -> list[str]:
    """Replace semantic calls by Attention, RotaryEmbedding and TensorScatter; return the reasons for those that remain."""
    for node, call in rewriter.semantic_calls(functional.write):
        if target.takes("TensorScatter", dtype_of(node)):
            rewriter.replace(node, rewriter.insert(node, whole_write, *call.args))
    for node, call in rewriter.semantic_calls(functional.rotary_embedding):
        x, cos, _ = (part.meta["info"] for part in call.args)
        rows = all(x[run].shape[0] == cos[run].shape[0] for run in (0, 1))
        if rows and target.takes("RotaryEmbedding", dtype_of(node)):
            rewriter.replace(node, rewriter.insert(node, whole_rotation, *call.args, **call.kwargs))
    unfit: dict[str, str] = {}
    for node, call in rewriter.semantic_calls(functional.attention):
        if not node.users or not target.takes("Attention", dtype_of(node)):
            continue
        if reason := _unfit(call):
            unfit.setdefault(reason, f"Attention: {node.meta['path']}: {reason}")
            continue
        options = {"scale": call.kwargs["scale"], "softcap": call.kwargs.get("softcap")}
        rewriter.replace(node, rewriter.insert(node, whole_attention, *call.args, **options))
    return [*unfit.values()]


def _unfit(call: SemanticCall) -> str | None:
    """Return the reason why Attention does not support a call; None where it does."""
    _, key, value, _ = call.args
    if call.kwargs.get("sinks") is not None:
        return "the operation does not support sinks"
    if key.meta["info"] != value.meta["info"]:
        return "keys and values have different widths"
    return None
