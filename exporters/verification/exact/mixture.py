"""The exact form of com.microsoft's QMoE: dequantized weights, and MoE in float32.

(QMoE rounds the inputs of 8-bit weights at every accuracy level.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from exporters.target.mxfp4_experts import reads_mxfp4
from exporters.target.targets import CONTRIB

OWN = frozenset(
    (
        "expert_weight_bits", "block_size", "accuracy_level", "weights_prepacked", "normalize_routing_weights",
        "quant_type",
    )
)  # fmt: skip
"""The attributes of QMoE that MoE lacks, or that take another value."""


def exact_mixture(node: NodeProto, graph: GraphProto) -> Iterator[NodeProto]:
    """Yield the nodes that replace one; constants are added to the graph.

    QMoE takes logits, as MoE does, or plain weights, whose sum is then a factor of the result. Experts of 4-bit floats are matrices
    already (:mod:`exporters.verification.exact.mxfp4_weights`).
    """
    name = node.output[0]
    options = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    x, scores, first, first_scale, first_bias, second, second_scale, second_bias = [*node.input, ""][:8]
    graph.initializer.append(numpy_helper.from_array(np.array([-1]), f"{name}:last"))
    dims = {weight.name: list(weight.dims) for weight in graph.initializer}
    made = [first, second]
    if not reads_mxfp4(node):
        made = [f"{name}:{codes}" for codes in made]
        for codes, scale in ((first, first_scale), (second, second_scale)):
            yield from _integer_weights(name, codes, scale, dims[codes], options["block_size"], graph)
    attributes = {key: value for key, value in options.items() if key not in OWN}
    inputs = [made[0], first_bias, made[1], second_bias]
    if options["normalize_routing_weights"]:
        yield _mixture([x, scores, *inputs], name, attributes, name=node.name)
        return
    for label, value in (
        ("least", np.array(np.finfo(np.float32).tiny, np.float32)),
        ("rows", np.array([-1, dims[second][1]])),
    ):
        graph.initializer.append(numpy_helper.from_array(value, f"{name}:{label}"))
    yield helper.make_node("Max", [scores, f"{name}:least"], [f"{name}:positive"])
    yield helper.make_node("Log", [f"{name}:positive"], [f"{name}:logits"])
    yield helper.make_node("ReduceSum", [scores, f"{name}:last"], [f"{name}:total"], keepdims=1)  # R 1
    yield helper.make_node("Reshape", [x, f"{name}:rows"], [f"{name}:x"])  # R D
    yield _mixture([f"{name}:x", f"{name}:logits", *inputs], f"{name}:normalized", attributes)
    yield helper.make_node("Mul", [f"{name}:normalized", f"{name}:total"], [f"{name}:mixed"])
    yield helper.make_node("Shape", [x], [f"{name}:shape"])
    yield helper.make_node("Reshape", [f"{name}:mixed", f"{name}:shape"], [name], name=node.name)


def _integer_weights(
    name: str, codes: str, scale: str, dims: Sequence[int], size: int, graph: GraphProto
) -> Iterator[NodeProto]:
    """Matrices of 8-bit codes, dequantized in float32."""
    made = f"{name}:{codes}"
    for label, value in (
        ("middle", np.array(128.0, np.float32)),
        ("split", np.array([*dims[:2], -1, size])),
        ("whole", np.array(dims)),
    ):
        graph.initializer.append(numpy_helper.from_array(value, f"{made}:{label}"))
    yield helper.make_node("Cast", [codes], [f"{made}:wide"], to=TensorProto.FLOAT)
    yield helper.make_node("Sub", [f"{made}:wide", f"{made}:middle"], [f"{made}:centred"])
    yield helper.make_node("Reshape", [f"{made}:centred", f"{made}:split"], [f"{made}:blocks"])
    yield helper.make_node("Unsqueeze", [scale, f"{name}:last"], [f"{made}:scale"])
    yield helper.make_node("Mul", [f"{made}:blocks", f"{made}:scale"], [f"{made}:scaled"])
    yield helper.make_node("Reshape", [f"{made}:scaled", f"{made}:whole"], [made])


def _mixture(inputs: Sequence[str], output: str, attributes: dict[str, Any], name: str = "") -> NodeProto:
    """MoE, which normalizes the weights of the chosen experts."""
    return helper.make_node(
        "MoE", inputs, [output], name=name, domain=CONTRIB, normalize_routing_weights=1, **attributes
    )
