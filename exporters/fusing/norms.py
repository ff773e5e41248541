"""A residual and the norm after it as one operation."""

from __future__ import annotations

import operator
from typing import Any

import torch.nn.functional as F
from torch import fx

from exporters.fusing.functions import skip_norm
from exporters.fusing.rewriter import Rewriter, dtype_of
from exporters.targets import Target

OPERATIONS = {F.layer_norm: "SkipLayerNormalization", F.rms_norm: "SkipSimplifiedLayerNormalization"}
"""Which operation adds before which norm."""


def fuse_skip_norms(rewriter: Rewriter, target: Target) -> None:
    """Put one operation in the place of every norm of a sum of two tensors alike, and of the sum."""
    for norm, operation in OPERATIONS.items():
        for node in rewriter.calls(norm):
            total, shape, weight, bias, eps = _arguments(node)
            parts = _summands(total)
            if parts is None or weight is None or len(shape) > 1:
                continue
            dtype = dtype_of(total)
            alike = all(dtype_of(part) == dtype for part in (weight, bias) if part is not None)
            if not alike or not target.takes(operation, dtype) or any(user < node for user in total.users):
                continue
            results = rewriter.insert(node, skip_norm, *parts, weight, bias, eps=eps, operation=operation)
            normed, summed = (rewriter.take(node, results, index) for index in range(2))
            rewriter.replace(node, normed)
            rewriter.replace(total, summed)


def _arguments(node: fx.Node) -> tuple[Any, ...]:
    """What is normed, over which shape, the weight, the bias and eps."""
    named = dict(zip(("x", "shape", "weight", "bias", "eps"), node.args, strict=False)) | node.kwargs
    return (*(named.get(name) for name in ("x", "shape", "weight", "bias")), named["eps"])


def _summands(total: fx.Node) -> tuple[Any, Any] | None:
    """The two tensors of the shape and dtype of their sum, or None."""
    if total.target is not operator.add:
        return None
    a, b = total.args
    same = all(isinstance(part, fx.Node) and part.meta["facts"] == total.meta["facts"] for part in (a, b))
    return (a, b) if same else None
