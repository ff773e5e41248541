"""The definitions of standard ONNX, with the operator that ONNX Runtime adds to its domain: for the checker and for inference of shapes."""

from __future__ import annotations

from typing import Any

import onnx
from onnx import defs, helper, shape_inference

_SCHEMA = defs.OpSchema
_FLOATS = [f"tensor({name})" for name in ("float", "float16", "bfloat16", "double")]

SIMPLIFIED_LAYER_NORMALIZATION = _SCHEMA(
    "SimplifiedLayerNormalization",
    "",
    1,
    "RMSNormalization of opset 23, as ONNX Runtime defines it in every opset.",
    inputs=[_SCHEMA.FormalParameter("X", "T"), _SCHEMA.FormalParameter("scale", "V")],
    outputs=[_SCHEMA.FormalParameter("Y", "V")],
    type_constraints=[("T", _FLOATS, "the vectors"), ("V", _FLOATS, "the scale and the result")],
    attributes=[
        _SCHEMA.Attribute(name, helper.make_attribute(name, default))
        for name, default in (("axis", -1), ("epsilon", 1e-5), ("stash_type", 1))
    ],
)


def _infer(context: shape_inference.InferenceContext) -> None:
    """The result has the shape of the vectors, and the type of the scale."""
    vectors, scale = context.get_input_type(0), context.get_input_type(1)
    vectors.tensor_type.elem_type = scale.tensor_type.elem_type
    context.set_output_type(0, vectors)


SIMPLIFIED_LAYER_NORMALIZATION.set_type_and_shape_inference_function(_infer)
if not defs.has(SIMPLIFIED_LAYER_NORMALIZATION.name):
    defs.register_schema(SIMPLIFIED_LAYER_NORMALIZATION)


def check(model: onnx.ModelProto) -> None:
    """Run the checker of ONNX. Raises :class:`onnx.checker.ValidationError`."""
    onnx.checker.check_model(model)


def inferred(model: onnx.ModelProto, **options: Any) -> onnx.ModelProto:
    """The model with the types and shapes of its values. Raises :class:`onnx.shape_inference.InferenceError` in strict mode."""
    return shape_inference.infer_shapes(model, **options)


def since(operation: str, opset: int) -> int:
    """The version of a standard operation in an opset. Raises :class:`onnx.defs.SchemaError` if there is none."""
    return int(defs.get_schema(operation, opset).since_version)
