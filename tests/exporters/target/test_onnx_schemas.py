"""The operator that ONNX Runtime adds to the domain of standard ONNX has types and shapes that inference knows."""

from __future__ import annotations

from onnx import TensorProto, helper

from exporters.target import onnx_schemas


def test_a_norm_has_the_shape_of_its_vectors_and_the_type_of_its_scale() -> None:
    norm = helper.make_node("SimplifiedLayerNormalization", ["x", "scale"], ["y"])
    vectors = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["tokens", 4])
    scale = helper.make_tensor_value_info("scale", TensorProto.FLOAT16, [4])
    graph = helper.make_graph([norm], "norm", [vectors, scale], [helper.make_empty_tensor_value_info("y")])
    model = onnx_schemas.inferred(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    assert model.graph.output[0] == helper.make_tensor_value_info("y", TensorProto.FLOAT16, ["tokens", 4])
