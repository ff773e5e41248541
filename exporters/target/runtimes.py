"""The first ONNX Runtime version that computes a graph, from a table of actual runs.

``runtimes.json`` is written by ``python -m tests.engines runtimes``, which runs files of every kind on every version of ONNX Runtime
that is installed. A graph is described by its features: its opset, its operators, and the uses of operators that not every
version has. A feature works from the first version that computed a file with it; a graph needs the newest version of its features,
or of combinations of features that work only in later versions. For a feature that was never run, the newest version is claimed.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import onnx
from onnx import AttributeProto, NodeProto, TensorProto

TABLE = Path(__file__).with_name("runtimes.json")

_SIZES = frozenset(
    ("K", "N", "axis", "block_size", "epsilon", "head_size", "hidden_size", "kv_num_heads", "num_heads", "rotary_embedding_dim",
     "scale", "k", "group", "chunk_size", "quantize_axis", "gather_axis", "keepdims", "activation_alpha", "activation_beta",
     "swiglu_limit", "beta", "axes", "cubic_coeff_a", "num_scan_inputs", "q_num_heads", "decay_rate")
)  # fmt: skip
"""Attributes that are parameters of a model rather than features of a kernel."""

_VALUES = frozenset(("bits", "expert_weight_bits", "kv_cache_bit_width", "accuracy_level", "to"))
"""Integer attributes with a separate kernel per value."""

_NARROW: dict[int, str] = {TensorProto.FLOAT16: "float16", TensorProto.BFLOAT16: "bfloat16"}

_UNIVERSAL = 18
"""The opset whose operators are in every recorded version of ONNX Runtime."""

_KERNELS = frozenset(
    (
        "Scan",
        "Loop",
        "If",
        "DequantizeLinear",
        "QuantizeLinear",
        "DynamicQuantizeLinear",
        "MatMulInteger",
        "ConvInteger",
    )
)
"""Older operators with later changes in their kernels."""


EXACT_SINCE = "1.30.0"
"""The first version that keeps sums of 8-bit products exact on x86-64 processors without VNNI, if a session requests it. Measured
on such a processor, with versions 1.20.1, 1.24.1, 1.26.0 and 1.30.0, and not from the table, which names its machine."""


def multiplies_integers(operations: Iterable[str]) -> bool:
    """Whether a graph with these operations has products of 8-bit integers, which saturate on processors without VNNI."""
    return not {"MatMulInteger", "QuantizeLinear"}.isdisjoint(operations)


def minimum_runtime(model: onnx.ModelProto) -> str:
    """The first ONNX Runtime version that computes a graph."""
    recorded, used = table(), features(model)
    known: dict[str, str] = recorded["features"]
    versions = [known.get(feature, recorded["versions"][-1]) for feature in used]
    versions += [version for names, version in recorded["combinations"] if used.issuperset(names)]
    return max(versions, key=version_key)


def features(model: onnx.ModelProto) -> set[str]:
    """The features of ONNX Runtime that a graph uses."""
    opset = next(entry.version for entry in model.opset_import if entry.domain == "")
    narrow = {_NARROW[code] for code in _element_types(model) if code in _NARROW}
    needed = {f"opset {opset}", *narrow}
    for node in _nodes(model.graph):
        if not _is_dated(node, opset):
            continue
        name = node.op_type if node.domain or node.op_type not in _BOTH else f"standard {node.op_type}"
        needed.add(name)
        needed |= {f"{name} in {dtype}" for dtype in narrow}
        needed |= {f"{name} {use}" for use in _uses(node)}
    return needed


def version_key(version: str) -> list[int]:
    """The sort key of a version."""
    return [*map(int, version.split("."))]


@functools.cache
def table() -> Any:
    """The table of recorded runs."""
    return json.loads(TABLE.read_text("utf-8"))


def _is_dated(node: NodeProto, opset: int) -> bool:
    """Whether some version lacks an operator, or part of it."""
    if node.domain not in ("", "ai.onnx") or node.op_type in _KERNELS:
        return True
    return bool(onnx.defs.get_schema(node.op_type, opset).since_version > _UNIVERSAL and node.op_type in _NEW)


_NEW = frozenset(
    (
        "Gelu",
        "Attention",
        "RotaryEmbedding",
        "RMSNormalization",
        "TensorScatter",
        "LinearAttention",
        "CausalConvWithState",
        "Swish",
    )
)
"""Standard operators newer than :data:`_UNIVERSAL`; new versions of older operators come with their opset."""


_BOTH = frozenset(("LinearAttention", "CausalConvWithState"))
"""Operators with the same name in standard ONNX and in ONNX Runtime's domain: the standard ones have other kernels, or none."""


def _uses(node: NodeProto) -> Iterator[str]:
    for attribute in node.attribute:
        name = attribute.name
        if name in _SIZES or attribute.type in (AttributeProto.GRAPH, AttributeProto.TENSOR):
            continue
        if attribute.type == AttributeProto.INT:
            if name in _VALUES:
                yield f"{name}={attribute.i}"
            elif attribute.i > 0:
                yield name
        elif attribute.type == AttributeProto.FLOAT:
            if attribute.f:
                yield name
        elif attribute.type == AttributeProto.STRING:
            yield f"{name}={attribute.s.decode()}"
    yield from (f"input {index}" for index, name in enumerate(node.input) if name and index >= _REQUIRED)


_REQUIRED = 3
"""The number of leading inputs that are not counted as uses: nearly every operator requires them."""


def _nodes(graph: onnx.GraphProto) -> Iterator[NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _nodes(attribute.g)


def _element_types(model: onnx.ModelProto) -> Iterable[int]:
    graph = model.graph
    values = (*graph.input, *graph.output)
    return {value.type.tensor_type.elem_type for value in values} | {
        tensor.data_type for tensor in graph.initializer
    }
