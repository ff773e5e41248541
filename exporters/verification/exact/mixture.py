"""The exact form of com.microsoft's QMoE: dequantized weights, and MoE in float32.

(QMoE rounds the inputs of 8-bit weights at every accuracy level.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from exporters.target.targets import CONTRIB

OWN = frozenset(
    ("expert_weight_bits", "block_size", "accuracy_level", "weights_prepacked", "normalize_routing_weights")
)
"""The attributes of QMoE that MoE lacks, or that take another value."""


def exact_mixture(node: NodeProto, graph: GraphProto) -> Iterator[NodeProto]:
    """Yield the nodes that replace one; constants are added to the graph.

    QMoE takes logits, as MoE does, or plain weights, whose sum is then a factor of the result.
    """
    name = node.output[0]
    options = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    x, scores, first, first_scale, first_bias, second, second_scale, second_bias = [*node.input, ""][:8]
    graph.initializer.append(numpy_helper.from_array(np.array(128.0, np.float32), f"{name}:middle"))
    graph.initializer.append(numpy_helper.from_array(np.array([-1]), f"{name}:last"))
    sizes = {weight.name: list(weight.dims) for weight in graph.initializer}
    for codes, scale in ((first, first_scale), (second, second_scale)):
        split = [*sizes[codes][:2], -1, options["block_size"]]
        for label, shape in (("split", split), ("whole", sizes[codes])):
            graph.initializer.append(numpy_helper.from_array(np.array(shape), f"{name}:{codes}:{label}"))
        yield helper.make_node("Cast", [codes], [f"{name}:{codes}:wide"], to=TensorProto.FLOAT)
        yield helper.make_node("Sub", [f"{name}:{codes}:wide", f"{name}:middle"], [f"{name}:{codes}:centred"])
        yield helper.make_node(
            "Reshape", [f"{name}:{codes}:centred", f"{name}:{codes}:split"], [f"{name}:{codes}:blocks"]
        )
        yield helper.make_node("Unsqueeze", [scale, f"{name}:last"], [f"{name}:{codes}:scale"])
        yield helper.make_node(
            "Mul", [f"{name}:{codes}:blocks", f"{name}:{codes}:scale"], [f"{name}:{codes}:scaled"]
        )
        yield helper.make_node(
            "Reshape", [f"{name}:{codes}:scaled", f"{name}:{codes}:whole"], [f"{name}:{codes}"]
        )
    attributes = {key: value for key, value in options.items() if key not in OWN}
    inputs = [f"{name}:{first}", first_bias, f"{name}:{second}", second_bias]
    if options["normalize_routing_weights"]:
        yield _mixture([x, scores, *inputs], name, attributes, name=node.name)
        return
    for label, value in (
        ("least", np.array(np.finfo(np.float32).tiny, np.float32)),
        ("rows", np.array([-1, sizes[second][1]])),
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


def _mixture(inputs: Sequence[str], output: str, attributes: dict[str, Any], name: str = "") -> NodeProto:
    """MoE, which normalizes the weights of the chosen experts."""
    return helper.make_node(
        "MoE", inputs, [output], name=name, domain=CONTRIB, normalize_routing_weights=1, **attributes
    )
