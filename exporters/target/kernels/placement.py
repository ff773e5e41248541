"""The nodes of a graph without a kernel in a provider, and whether the graph can be captured as a CUDA graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import onnx

from exporters.target.kernels.element_types import element_types
from exporters.target.kernels.table import KernelTable
from zoo.record.records import PlacementRecord

CONTROL_FLOW = frozenset({"If", "Loop", "Scan"})

SIZED_BY_DATA = frozenset({"NonZero"})
"""Operations that copy the size of their result from the device to the host, which capturing forbids (ONNX Runtime:
``cuda/tensor/nonzero_op.cc``). A session is made nonetheless, and fails when it captures."""


def placement(model: onnx.ModelProto, table: KernelTable) -> PlacementRecord:
    """The nodes that run on the CPU instead of the provider, the tensors copied for them, and any obstacle to a CUDA graph.

    Small integers for shapes always stay on the CPU, which reads the shapes.
    """
    types = element_types(model)
    opset = next(entry.version for entry in model.opset_import if entry.domain == "")
    missing, operations = Counter[str](), set[str]()
    made, read = dict[str, bool](), dict[str, set[bool]]()
    for node in _nodes(model.graph):
        if not node.domain:
            operations.add(node.op_type)
        inputs, outputs = ([types.get(name) for name in names] for names in (node.input, node.output))
        computes = table.computes_node(node, opset, inputs, outputs)
        if not computes:
            missing[f"{node.op_type} ({next(filter(None, inputs), 'unknown')})"] += 1
        made.update((name, computes) for name in node.output if name)
        for name in filter(None, node.input):
            read.setdefault(name, set()).add(computes)
    weights = {tensor.name for tensor in model.graph.initializer}
    for output in model.graph.output:
        read.setdefault(output.name, set()).add(True)
    copies = {name for name, readers in read.items() if readers != {made.get(name, True)}}
    if missing:
        reason = "nodes run on the CPU: " + ", ".join(sorted(missing))
    elif control := operations & CONTROL_FLOW:
        reason = "control flow: " + ", ".join(sorted(control))
    elif sized := operations & SIZED_BY_DATA:
        reason = "sizes depend on data: " + ", ".join(sorted(sized))
    else:
        reason = ""
    return PlacementRecord(
        provider=table.provider,
        kernels=table.source,
        on_cpu=dict(sorted(missing.items())),
        copies=len(copies - weights),
        not_captured=reason,
    )


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)
