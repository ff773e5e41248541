"""The lowest opset that a graph can declare."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from exporters.graph.values import Node
from exporters.target.kernels.table import table_of
from exporters.target.targets import BASE_OPSET, BFLOAT16_SINCE, OPERATIONS, Target


def opset_of(nodes: Sequence[Node], target: Target) -> int:
    """The lowest opset, from the target's own up, in which all operations are valid as written, inner graphs included.

    Later opsets take bfloat16 in more operations. If the target's provider has no kernel of the later opset, the graph keeps
    the earlier one, and :mod:`exporters.target.kernels.widening` computes these operations in float32.
    """
    within = [inner for node in nodes for inner in node.within]
    least = max([target.opset or BASE_OPSET, *map(_since, within)])
    narrow = max([least, *(BFLOAT16_SINCE[node.op] for node in within if _needs_later_opset(node))])
    kernels = table_of(target.providers[0])
    names = {node.op for node in within if not node.domain}
    if kernels is not None and any(kernels.loses(name, least, narrow) for name in names):
        return least
    return narrow


def _needs_later_opset(node: Node) -> bool:
    values = (*node.inputs, *node.outputs)
    return node.op in BFLOAT16_SINCE and any(value and value.dtype == torch.bfloat16 for value in values)


def _since(node: Node) -> int:
    """The lowest opset in which an operation is valid as written, bfloat16 aside."""
    operation = OPERATIONS.get(node.op)
    if operation is None or node.domain:
        return 0
    return operation.standard or operation.since
