"""The opset that a graph needs."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from exporters.graph import Node
from exporters.targets import BASE_OPSET, BFLOAT16_SINCE, OPERATIONS


def opset_of(nodes: Iterable[Node], least: int | None = None) -> int:
    """The first opset, ``least`` or later, in which operations, and those of the graphs inside them, are valid as written."""
    return max([least or BASE_OPSET, *(_since(inner) for node in nodes for inner in node.within)])


def _since(node: Node) -> int:
    """The first opset in which an operation is valid as written."""
    in_bfloat16 = any(
        value is not None and value.dtype == torch.bfloat16 for value in (*node.inputs, *node.outputs)
    )
    since = BFLOAT16_SINCE.get(node.op, 0) if in_bfloat16 else 0
    operation = OPERATIONS.get(node.op)
    if operation is None or node.domain:
        return since
    return max(since, operation.standard or operation.since)
