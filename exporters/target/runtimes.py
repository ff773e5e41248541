"""The first ONNX Runtime that computes a graph: looked up in a table of what was run.

``runtimes.json`` is written by ``python -m tests.engines runtimes``, which runs files of every kind on every version of ONNX Runtime
that is installed. A graph is described by its features: its opset, its operators, and how it uses those that not every version has.
A feature works in a version where a file that has it was computed there, and in every later version; a graph needs the
newest of its features' versions, or of the combinations of features that work only in later versions. Where a feature was never run, the newest version that was run is claimed, and no older one.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import onnx
from onnx import AttributeProto, NodeProto, TensorProto

from exporters.target import onnx_schemas

TABLE = Path(__file__).with_name("runtimes.json")

_SIZES = frozenset(
    ("K", "N", "axis", "block_size", "epsilon", "head_size", "hidden_size", "kv_num_heads", "num_heads", "rotary_embedding_dim",
     "scale", "k", "group", "chunk_size", "quantize_axis", "gather_axis", "keepdims", "activation_alpha", "activation_beta",
     "swiglu_limit", "beta", "axes", "cubic_coeff_a", "num_scan_inputs", "q_num_heads", "decay_rate")
)  # fmt: skip
"""Attributes that hold a value of the model rather than a way to compute."""

_VALUES = frozenset(("bits", "expert_weight_bits", "kv_cache_bit_width", "accuracy_level", "to"))
"""Integers that each need their own kernel."""

_NARROW: dict[int, str] = {TensorProto.FLOAT16: "float16", TensorProto.BFLOAT16: "bfloat16"}

_UNIVERSAL = 18
"""Operators of this opset are in every version of ONNX Runtime that is run."""

_KERNELS = frozenset(
    (
        "Scan", "Loop", "If", "DequantizeLinear", "QuantizeLinear", "DynamicQuantizeLinear", "MatMulInteger",
        "ConvInteger", "Softmax", "Relu",
    )
)  # fmt: skip
"""Older operators whose kernels have changed since. In float16, old versions expand Softmax into operations that they reject, and
compute a T5 with Relu as NaN."""


EXACT_SINCE = "1.30.0"
"""The first version that keeps sums of 8-bit products exact on x86-64 processors without VNNI, where a session asks for it. It is from
measurements on such a processor, of versions 1.20.1, 1.24.1, 1.26.0 and 1.30.0: not from the table, whose machine is named there."""


def multiplies_integers(operations: Iterable[str]) -> bool:
    """Whether a graph with these operations has products of 8-bit integers, which saturate on processors without VNNI."""
    return not {"MatMulInteger", "QuantizeLinear"}.isdisjoint(operations)


def minimum_runtime(model: onnx.ModelProto) -> str:
    """The version of the first ONNX Runtime that computes a graph."""
    stored, used = table(), features(model)
    known: dict[str, str] = stored["features"]
    versions = [known.get(feature, stored["versions"][-1]) for feature in used]
    versions += [version for names, version in stored["combinations"] if used.issuperset(names)]
    return max(versions, key=version_key)


def features(model: onnx.ModelProto) -> set[str]:
    """The features of ONNX Runtime that a graph uses."""
    opset = next(entry.version for entry in model.opset_import if entry.domain == "")
    narrow = {_NARROW[code] for code in _element_types(model) if code in _NARROW}
    names = {f"opset {opset}", *narrow}
    for node in _nodes(model.graph):
        if not _is_dated(node, opset):
            continue
        name = node.op_type if node.domain or node.op_type not in _BOTH else f"standard {node.op_type}"
        names.add(name)
        names |= {f"{name} in {dtype}" for dtype in narrow}
        names |= {f"{name} {use}" for use in _uses(node)}
    return names


def version_key(version: str) -> list[int]:
    """The sort key of a version."""
    return [*map(int, version.split("."))]


@functools.cache
def table() -> Any:
    """The table of what was run."""
    return json.loads(TABLE.read_text("utf-8"))


def _is_dated(node: NodeProto, opset: int) -> bool:
    """Whether not every version has an operator, or has it in full."""
    if node.domain not in ("", "ai.onnx") or node.op_type in _KERNELS:
        return True
    return onnx_schemas.since(node.op_type, opset) > _UNIVERSAL and node.op_type in _NEW


_NEW = frozenset(
    (
        "Gelu", "Attention", "RotaryEmbedding", "RMSNormalization", "TensorScatter", "LinearAttention",
        "CausalConvWithState", "Swish",
    )
)  # fmt: skip
"""Standard operators that are newer than :data:`_UNIVERSAL`; new versions of older ones come with their opset."""


_BOTH = frozenset(("LinearAttention", "CausalConvWithState"))
"""Operators that standard ONNX has under the same names as ONNX Runtime: they have other kernels, or none."""


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
"""The number of inputs that nearly every operator requires, which do not count as uses."""


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
