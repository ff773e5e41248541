"""Fusion of linear layers with what follows: an activation after the bias, or a cast to float32."""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.nn.functional as F

from exporters.graph.fusing.functions import bias_gelu, wide_linear
from exporters.graph.fusing.joining import linear_arguments
from exporters.graph.fusing.rewriter import Rewriter, dtype_of
from exporters.target.targets import Target

OPERATIONS = {"none": "BiasGelu", "tanh": "FastGelu"}
"""The operation that adds a bias and applies GELU, by the form of GELU."""

WIDENING = (operator.add, torch.add, "add", "to", "float")
"""The functions that read a float16 result as float32: sums with the residual stream, and casts."""


def fuse_bias_activations(rewriter: Rewriter, target: Target) -> None:
    """Fuse every GELU of a linear layer with the layer's bias; the layer keeps only its product."""
    for node in rewriter.calls(F.gelu):
        linear: Any = node.args[0]
        if linear.target is not F.linear or len(linear.users) > 1:
            continue
        x, weight, bias = linear_arguments(linear)
        operation = OPERATIONS[str(node.kwargs.get("approximate", "none"))]
        if bias is None or not target.takes(operation, dtype_of(bias)):
            continue
        product = rewriter.insert(linear, F.linear, x, weight)
        rewriter.replace(node, rewriter.insert(node, bias_gelu, product, bias, operation=operation))


def widen(rewriter: Rewriter) -> None:
    """Replace linear layers whose float16 results are only cast to float32 by products with float32 results, which do not overflow.

    The last layer of a feed-forward or an attention may exceed the range of float16 (T5's do) while the residual stream is
    float32.
    """
    for linear in rewriter.calls(F.linear):
        if dtype_of(linear) != torch.float16:
            continue
        passed, users = [], list(linear.users)
        while users and all(user.target is F.dropout for user in users):
            passed += users
            users = [user for dropout in users for user in dropout.users]
        if users and all(user.target in WIDENING and dtype_of(user) == torch.float32 for user in users):
            wide = rewriter.insert(linear, wide_linear, *linear_arguments(linear))
            for node in (linear, *passed):
                rewriter.replace(node, wide)
