"""Validation of ONNX graphs without running them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import onnx
from onnx import shape_inference

from exporters.target import onnx_schemas
from specs.base.errors import UserError


class InvalidGraphError(UserError):
    """A graph is not valid ONNX."""

    evidence: ClassVar[dict[str, Any]] = {"verification": None}
    """The results that show it, as JSON data."""


@dataclass(frozen=True)
class Checked:
    """The result of the ONNX checker and strict shape inference: the number of results that some operation reads, and
    the number of these with a known rank."""

    results: int
    ranked: int

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "checker": f"onnx {onnx.__version__}",
            "shape_inference": "strict",
            "results": self.results,
            "ranked": self.ranked,
        }


def check_graph(name: str, model: onnx.ModelProto) -> Checked:
    """Run the ONNX checker and shape inference, which must agree with the declared shapes.

    Raises :class:`InvalidGraphError`.
    """
    bare = _without_weights(model)
    try:
        onnx_schemas.check(bare)
        inferred = onnx_schemas.inferred(bare, check_type=True, strict_mode=True, data_prop=True)
    except (onnx.checker.ValidationError, shape_inference.InferenceError) as error:
        reason = " ".join(str(error).split())
        raise InvalidGraphError(f"{name} is not valid ONNX: {reason}") from error
    described = (*inferred.graph.value_info, *inferred.graph.output)
    known = {value.name for value in described if value.type.tensor_type.HasField("shape")}
    read = {name for node in model.graph.node for name in node.input if name}
    read |= {output.name for output in model.graph.output}
    results = [result for node in model.graph.node for result in node.output if result in read]
    return Checked(len(results), sum(result in known for result in results))


def _without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """The graph with its external weights replaced by inputs: the data file need not exist yet."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    inside = [tensor for tensor in model.graph.initializer if not tensor.external_data]
    outside = [tensor for tensor in model.graph.initializer if tensor.external_data]
    del bare.graph.initializer[:]
    bare.graph.initializer.extend(inside)
    bare.graph.input.extend(
        onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims) for tensor in outside
    )
    return bare
