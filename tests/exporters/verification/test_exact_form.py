"""The exact form of a graph keeps the types and the shapes of its results."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from onnx import TensorProto

from exporters.verification.exact.bfloat16 import lifted
from exporters.verification.exact.graph import exact
from specs.model.model import Model
from tests.exporters.models import written
from tests.zoo.tiny import bert, gpt2


def test_the_exact_form_of_float32_is_the_graph_itself(tmp_path: Path) -> None:
    """ONNX Runtime takes a second longer to load 2,000 nodes whose results have no shapes."""
    model = graph_of(gpt2(), "fp32", tmp_path)
    assert model.graph.value_info
    assert exact(model, None, {}) == model


@pytest.mark.parametrize("spec", [gpt2(), bert()], ids=lambda spec: spec.name)
@pytest.mark.parametrize(("precision", "half"), [("fp16", torch.float16), ("bf16", torch.bfloat16)])
def test_the_exact_form_of_half_floats_states_float32(
    spec: Model, precision: str, half: torch.dtype, tmp_path: Path
) -> None:
    model = graph_of(spec, precision, tmp_path)
    form = exact(model, half, {})
    known = {value.name: value.type.tensor_type.elem_type for value in form.graph.value_info}
    assert known.keys() == {value.name for value in model.graph.value_info}
    assert TensorProto.FLOAT in known.values()
    assert not {TensorProto.FLOAT16, TensorProto.BFLOAT16} & {*known.values()}
    onnx.shape_inference.infer_shapes(form, strict_mode=True)  # refuses other types than it finds


@pytest.mark.parametrize("spec", [gpt2(), bert()], ids=lambda spec: spec.name)
def test_a_graph_that_emulates_bfloat16_states_the_shapes_of_its_results(spec: Model, tmp_path: Path) -> None:
    """ONNX Runtime takes six times as long to load one without them."""
    model = graph_of(spec, "bf16", tmp_path)
    form = lifted(model)
    known = {value.name: value.type.tensor_type.elem_type for value in form.graph.value_info}
    stored = {value.name: value.type.tensor_type.elem_type for value in model.graph.value_info}
    rounded = [name for name, dtype in stored.items() if dtype == TensorProto.BFLOAT16]
    assert rounded
    assert {known[name] for name in rounded} == {TensorProto.FLOAT}
    assert {known[f"{name}:bfloat16"] for name in rounded} == {TensorProto.BFLOAT16}
    assert all(known[name] == dtype for name, dtype in stored.items() if name not in rounded)
    onnx.shape_inference.infer_shapes(form, strict_mode=True)  # refuses other types than it finds


def graph_of(spec: Model, precision: str, folder: Path) -> onnx.ModelProto:
    """The graph of an export without weights."""
    written(spec, folder / "out", precision=precision, weights="none", verify=False)
    return onnx.load(folder / "out" / "model.onnx", load_external_data=False)
