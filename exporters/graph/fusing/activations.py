"""Fusion of a linear layer's bias with the activation that follows."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F

from exporters.graph.fusing.functions import bias_gelu
from exporters.graph.fusing.joining import linear_arguments
from exporters.graph.fusing.rewriter import Rewriter, dtype_of
from exporters.target.targets import Target

OPERATIONS = {"none": "BiasGelu", "tanh": "FastGelu"}
"""The operation that adds a bias and applies GELU, by the form of GELU."""


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
