"""The operations that standard ONNX has since opset 23 for what models here call whole.

A target that has them takes keys and values of one width, and no sinks; what it does not take stays as it is.
"""

from __future__ import annotations

from exporters.fusing.functions import whole_attention, whole_rotation, whole_write
from exporters.fusing.rewriter import Rewriter, dtype_of
from exporters.targets import Target
from zoo import functional
from zoo.tracing.tracer import Meaning


def fuse_standard(rewriter: Rewriter, target: Target) -> list[str]:
    """Put Attention, RotaryEmbedding and TensorScatter in the place of what they do; returns what stays, and why."""
    for node, meaning in rewriter.meant(functional.write):
        if target.takes("TensorScatter", dtype_of(node)):
            rewriter.replace(node, rewriter.insert(node, whole_write, *meaning.args))
    for node, meaning in rewriter.meant(functional.rotary_embedding):
        x, cos, _ = (part.meta["facts"] for part in meaning.args)
        rows = all(x[run].shape[0] == cos[run].shape[0] for run in (0, 1))
        if rows and target.takes("RotaryEmbedding", dtype_of(node)):
            rewriter.replace(node, rewriter.insert(node, whole_rotation, *meaning.args, **meaning.kwargs))
    unfit: dict[str, str] = {}
    for node, meaning in rewriter.meant(functional.attention):
        if not node.users or not target.takes("Attention", dtype_of(node)):
            continue
        if reason := _unfit(meaning):
            unfit.setdefault(reason, f"Attention: {node.meta['path']}: {reason}")
            continue
        options = {"scale": meaning.kwargs["scale"], "softcap": meaning.kwargs.get("softcap")}
        rewriter.replace(node, rewriter.insert(node, whole_attention, *meaning.args, **options))
    return [*unfit.values()]


def _unfit(meaning: Meaning) -> str | None:
    """Why Attention cannot do an attention, or None."""
    _, key, value, _ = meaning.args
    if meaning.kwargs.get("sinks") is not None:
        return "it knows no sinks"
    if key.meta["facts"] != value.meta["facts"]:
        return "keys and values are not of one width"
    return None
