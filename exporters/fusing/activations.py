"""The bias of a linear layer and the activation behind it as one operation."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F

from exporters.fusing.functions import bias_gelu
from exporters.fusing.joining import linear_arguments
from exporters.fusing.rewriter import Rewriter, dtype_of
from exporters.targets import Target

OPERATIONS = {"none": "BiasGelu", "tanh": "FastGelu"}
"""Which operation adds a bias before which form of GELU."""


def fuse_bias_activations(rewriter: Rewriter, target: Target) -> None:
    """Put one operation in the place of every GELU of a linear layer with a bias, and leave the layer its product."""
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
