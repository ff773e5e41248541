"""The rounding error that bounds the differences of models that amplify it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper
from torch import nn

from exporters.export import export
from exporters.steps.options import ExportOptions
from exporters.verification import rounding_bound as rounding_error
from exporters.verification.cases import Case, cases
from exporters.verification.overflow import overflow_of
from exporters.verification.reference import Reference, expect
from exporters.verification.rounding_bound import SIGMOID_ERROR, TANH_ERROR, roundings_of
from specs.model.model import Model
from tests.exporters.reduced_presets import filled, save_with_outliers, structure
from tests.zoo.tiny import BLOCK, gpt2, llava

Patch = pytest.MonkeyPatch


def errors(spec: Model) -> dict[str, float]:
    """The rounding errors of a model by output."""
    reference = Reference(spec, lambda: filled(spec))
    with torch.inference_mode():
        expected = expect(reference, list(cases(spec))[:2], lambda stage: None, lambda: None, None)
        return dict(roundings_of(reference, expected)())


@pytest.mark.parametrize("spec", [gpt2(), llava()], ids=["gpt2", "llava"])
def test_the_largest_of_several_draws_counts_and_is_the_same_each_time(
    spec: Model, monkeypatch: Patch
) -> None:
    found = errors(spec)
    assert found == errors(spec)
    monkeypatch.setattr(rounding_error, "DRAWS", 1)
    single = errors(spec)
    assert all(0 <= single[name] <= found[name] < 1e-4 for name in found)
    assert found["logits"] > single["logits"]


def test_a_draw_in_which_a_router_chooses_otherwise_does_not_count(monkeypatch: Patch) -> None:
    """Experts in another order give outputs as far off as can be."""
    mixture = {
        "kind": "mixture", "experts": 4, "top_k": 2, "expert": {"kind": "mlp", "hidden": 8, "activation": "relu"}
    }  # fmt: skip
    spec = gpt2(decoder={"layers": 1, "block": {**BLOCK, "feed_forward": mixture}})
    assert errors(spec)["logits"] < 1e-4

    def turned(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        return -x if x.shape[0] == 4 and x.dim() == 2 else x  # the router's matrix

    monkeypatch.setattr(rounding_error, "_neighbours", turned)
    assert errors(spec)["logits"] < 1e-4
    monkeypatch.setattr(rounding_error, "routers_of", lambda model: [])
    assert errors(spec)["logits"] > 1e-3


@pytest.mark.parametrize(
    ("operation", "exact", "error"),
    [("Sigmoid", torch.sigmoid, SIGMOID_ERROR), ("Tanh", torch.tanh, TANH_ERROR)],
)
def test_activations_of_onnx_runtime_are_as_precise_as_is_said(
    operation: str, exact: Any, error: float
) -> None:
    """About a unit in the last place of 1, for results near 0 or -1 as well: their precision is not relative."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy")
    graph = helper.make_graph([helper.make_node(operation, ["x"], ["y"])], operation, [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for start, end in ((-18, -5), (-5, 40)):
        given = np.linspace(start, end, 100_001, dtype=np.float32)
        (found,) = session.run(None, {"x": given})
        worst = np.abs(found - exact(torch.from_numpy(given).double()).numpy()).max()
        assert error / 2 < worst < 2 * error


def test_activations_err_by_no_more() -> None:
    x = torch.linspace(-30, 30, 1001)
    with rounding_error._RuntimeActivations(torch.Generator().manual_seed(0)):
        gates, activated, bounded = torch.sigmoid(x), F.silu(x), torch.tanh(x)
        by_tanh, others = F.gelu(x, approximate="tanh"), F.gelu(x)
    assert 0 < float((gates - torch.sigmoid(x)).abs().max()) <= 1.01 * SIGMOID_ERROR
    assert 1e-6 < float((activated - F.silu(x)).abs().max()) <= 30 * 1.1 * SIGMOID_ERROR
    assert 0 < float((bounded - torch.tanh(x)).abs().max()) <= 1.2 * TANH_ERROR
    assert 1e-6 < float((by_tanh - F.gelu(x, approximate="tanh")).abs().max()) <= 15 * 1.2 * TANH_ERROR
    assert torch.equal(others, F.gelu(x))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "target", "precision"),
    [("internvl3-1b", "cpu", "int8"), ("idefics2-8b", "tensorrt", "bf16")],
)
def test_models_whose_single_draw_is_a_lucky_one(
    name: str, target: str, precision: str, tmp_path: Path
) -> None:
    spec, weights = structure(name), tmp_path / "model.safetensors"
    save_with_outliers(spec, weights)
    cache = 64 if target == "tensorrt" else None
    options = ExportOptions.of(target=target, precision=precision, weights=str(weights), cache_length=cache)
    verification = export(spec, tmp_path / "x", options).verification
    assert verification is not None
    assert verification.passed
    for amplified in verification.in_rounding:  # none with the present graphs
        assert amplified.rounding is not None
        assert amplified.max_abs < 2 * amplified.rounding


class _Product(nn.Module):
    """A layer that reads a product, and gives little."""

    def __init__(self) -> None:
        super().__init__()
        self.output = nn.Linear(4, 2, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.output(x * x)
        return result


def test_an_input_beyond_float16_is_named(monkeypatch: Patch) -> None:
    model: Any = _Product()
    nn.init.constant_(model.output.weight, 1e-3)
    model.requires_grad_(False)
    case: Any = Case
    monkeypatch.setattr(
        "exporters.verification.overflow.full_pass", lambda model, case: model(torch.full((1, 4), 300.0))
    )
    assert overflow_of(model, [case], torch.float16) == (
        "output reads values up to 9.0e+04, but float16 holds at most 6.6e+04."
    )
    assert overflow_of(model, [case], torch.bfloat16) == ""
