"""The tensors that autograd saves in a forward pass, from the entries of operations.

A view saves the tensor that it views, and a tensor that several calls save counts once.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from torch import fx

from zoo.ops import TensorInfo, operation_of
from zoo.ops.operation import CALLS
from zoo.ops.saved import GradientCall, SavedTensor, saves_all
from zoo.reports.trace import outputs_by_name


def saved_tensors(graph: fx.Graph, trained: Set[fx.Node], *, fused: bool) -> list[SavedTensor]:
    """The tensors that autograd saves for a graph with trained parameters, each once.

    ``trained``: its :func:`trained_values`; ``fused``: attention runs as one kernel, which never saves its scores, and so does RMS norm.
    An operation without an entry counts as saving all of its inputs and its result.
    """
    tensors: dict[Any, SavedTensor] = {}
    for node in graph.nodes:
        if node not in trained or node.op not in CALLS:
            continue
        entry = operation_of(node.target)
        rule = saves_all if entry is None else entry.saved
        for saved in rule(GradientCall(node, trained, root, fused)):
            if saved.extra is None and saved.value.op == "get_attr":
                continue  # weights are in memory anyway
            tensors.setdefault(saved.value if saved.extra is None else (saved.by, len(tensors)), saved)
    return list(tensors.values())


def trained_values(graph: fx.Graph) -> set[fx.Node]:
    """The values through which gradients flow from an output to a parameter."""
    reached = set(outputs_by_name(graph).values())
    for node in reversed(graph.nodes):
        if node in reached and _is_float(node):
            reached.update(node.all_input_nodes)
    trained: set[fx.Node] = set()
    for node in graph.nodes:
        learns = node.meta.get("trained", False) or (
            not _gives_device_only(node) and any(operand in trained for operand in node.all_input_nodes)
        )
        if learns and node in reached and _is_float(node):
            trained.add(node)
    return trained


def root(value: fx.Node) -> fx.Node:
    """The value that owns the memory of a value; one of several results owns its memory, unless all of them are views."""
    while _is_view(value):
        source = value.all_input_nodes[0]
        if isinstance(source.meta["info"][0], tuple) and not _is_view(source):
            break
        value = source
    return value


def _is_view(value: fx.Node) -> bool:
    entry = operation_of(value.target) if value.op in CALLS else None
    return entry is not None and entry.shares_memory(value)


def _gives_device_only(node: fx.Node) -> bool:
    entry = operation_of(node.target)
    return entry is not None and entry.device_only


def _is_float(node: fx.Node) -> bool:
    info = node.meta["info"][0] if "info" in node.meta else None
    first = info[0] if isinstance(info, tuple) else info
    return isinstance(first, TensorInfo) and first.dtype.is_floating_point
