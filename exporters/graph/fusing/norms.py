"""Fusion of a residual connection with the following norm, and of unit-length normalization into a norm."""

from __future__ import annotations

import operator
from typing import Any

import torch.nn.functional as F
from torch import fx

from exporters.graph.fusing.functions import skip_norm, unit_length
from exporters.graph.fusing.rewriter import Rewriter, dtype_of
from exporters.target.targets import Target
from zoo import functional

OPERATIONS = {F.layer_norm: "SkipLayerNormalization", F.rms_norm: "SkipSimplifiedLayerNormalization"}
"""The operation that adds and normalizes, by the norm."""


def fuse_skip_norms(rewriter: Rewriter, target: Target) -> None:
    """Fuse every norm of a sum of two tensors of equal shape with the sum."""
    for norm, operation in OPERATIONS.items():
        for node in rewriter.calls(norm):
            total, shape, weight, bias, eps = norm_arguments(node)
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


def fuse_unit_lengths(rewriter: Rewriter) -> None:
    """Compute unit-length normalization as a norm, whose weights have the number that the result is multiplied by."""
    for node, call in rewriter.semantic_calls(functional.unit_length):
        scaled, length = _scaled_after(node)
        if scaled is not None:
            rewriter.replace(scaled, next(part for part in scaled.args if isinstance(part, fx.Node)))
        rewriter.replace(node, rewriter.insert(node, unit_length, *call.args, **call.kwargs, length=length))


def _scaled_after(node: fx.Node) -> tuple[Any, float]:
    """The product of a result, at most transposed before it, with a number, and the number; None and 1 without such a product."""
    while len(node.users) == 1:
        (user,) = node.users
        if user.target is operator.mul:
            numbers = [part for part in user.args if isinstance(part, int | float)]
            return (user, float(numbers[0])) if numbers else (None, 1.0)
        if user.target != "transpose":
            break
        node = user
    return None, 1.0


def norm_arguments(node: fx.Node) -> tuple[Any, ...]:
    """Return the input of a norm, its normalized shape, the weight, the bias and eps."""
    named = dict(zip(("x", "shape", "weight", "bias", "eps"), node.args, strict=False)) | node.kwargs
    return (*(named.get(name) for name in ("x", "shape", "weight", "bias")), named["eps"])


def _summands(total: fx.Node) -> tuple[Any, Any] | None:
    """Return the two summands if both have the shape and dtype of their sum; otherwise None."""
    if total.target is not operator.add:
        return None
    a, b = total.args
    same = all(isinstance(part, fx.Node) and part.meta["info"] == total.meta["info"] for part in (a, b))
    return (a, b) if same else None
