"""Static scales of inputs in int8 encoders: exact, as accurate as they should be, and refused where they cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
import torch

from exporters.exported.load_export import load_export
from exporters.exported.model_source import model_source
from exporters.graph.quantization import static_matrix
from exporters.rounding.calibrated_weights import Rounding
from exporters.rounding.calibration import rounded_for
from exporters.rounding.input_search import searched_inputs
from exporters.runtime.exported import open_export
from exporters.steps.manifest import Export
from exporters.steps.options import ExportOptions
from exporters.steps.plan import Plan
from exporters.steps.static_activations import with_activations
from exporters.verification import rounded_products
from exporters.verification.result import VerificationError
from specs.base.errors import UserError
from specs.model.model import Model
from tests.exporters.models import written
from tests.exporters.quality import checkpoints
from tests.exporters.verification.test_verification import operation
from tests.thinned import one_in
from tests.zoo.tiny import BLOCK, bert, gpt2
from zoo.builder import assemble
from zoo.core.tensors import weight_tensors
from zoo.record.manifest import read_record
from zoo.weights.blocks import Blocks
from zoo.weights.input_scales import InputScales
from zoo.weights.random import RandomWeights

Patch = pytest.MonkeyPatch
PER_ROW = Blocks(8, None)


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoints.bert(tmp_path_factory.mktemp("bert"))


def exported(origin: Path, directory: Path, **options: Any) -> Export:
    return written(
        model_source(str(origin)).spec, directory, **{"weights": str(origin), "precision": "int8", **options}
    )


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", "portable"])
def test_static_scales_are_the_default_and_integer_products(
    origin: Path, target: str, tmp_path: Path
) -> None:
    loss = {}
    for name in (None, "dynamic"):
        found = exported(origin, tmp_path / str(name), target=target, activations=name)
        assert found.quality is not None
        loss[name] = 1 - found.quality.figures["cosine"]
    assert loss[None] < 0.3 * loss["dynamic"]
    manifest = read_record(tmp_path / "None").manifest
    assert manifest.options.activations == "static"
    assert manifest.calibrated_on is not None
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    options.log_severity_level = 4
    onnxruntime.InferenceSession(
        tmp_path / "None" / "model.onnx", options, providers=["CPUExecutionProvider"]
    )
    nodes = [
        node.op_type for node in onnx.load(tmp_path / "optimized.onnx", load_external_data=False).graph.node
    ]
    products = {"cpu": 1 + 1 + 2 + 2, "portable": 3 + 1 + 2 + 2}[target]  # of 8 bits one, of 16 bits two
    assert nodes.count("MatMulIntegerToFloat") == 2 * products


@pytest.mark.slow
def test_weights_read_back_equal_the_multiplied_ones(origin: Path, tmp_path: Path) -> None:
    exported(origin, tmp_path / "x", target="cpu", verify=False, activations="static")
    original = dict(weight_tensors(model_source(str(origin)).model()[0]))
    for name, tensor in weight_tensors(load_export(open_export(tmp_path / "x"))):
        before = original[name].detach()
        assert (tensor - before).norm() <= 0.05 * before.norm(), name


def test_random_weights_have_dynamic_scales(tmp_path: Path) -> None:
    written(bert(d_model=64), tmp_path / "x", precision="int8", verify=False)
    nodes = [node.op_type for node in onnx.load(tmp_path / "x" / "model.onnx").graph.node]
    assert "DynamicQuantizeLinear" in nodes
    assert "QuantizeLinear" not in nodes


def wrong_input_scale(patch: Patch) -> None:
    """Codes are read with another scale than they were made with."""

    def op(write: Any, graph: Any, name: str, *inputs: Any, **attributes: Any) -> Any:
        if name == "DequantizeLinear" and inputs[0].node is not None:
            return write(name, inputs[0], graph.constant(0.0626, torch.float32), *inputs[2:], **attributes)
        return write(name, *inputs, **attributes)

    operation(patch, op)


def wrong_zero_point(patch: Patch) -> None:
    def op(write: Any, graph: Any, name: str, *inputs: Any, **attributes: Any) -> Any:
        if name == "DequantizeLinear" and inputs[0].node is not None:
            inputs = (*inputs[:2], graph.constant(99, torch.uint8))
        return write(name, *inputs, **attributes)

    operation(patch, op)


def smoothed_weights_alone(patch: Patch) -> None:
    def op(write: Any, graph: Any, name: str, *inputs: Any, **attributes: Any) -> Any:
        if name == "Mul" and inputs[1].name.endswith(".input_multipliers"):
            return write("Div", write(name, *inputs), inputs[1])
        return write(name, *inputs, **attributes)

    operation(patch, op)


def smoothed_inputs_alone(patch: Patch) -> None:
    def divided(self: Any, source: Any) -> InputScales:
        return InputScales(torch.ones(self.width), 1 / 16, 100, self.input_bits)

    original = static_matrix.StaticMatrix.pieces
    checking = InputScales.for_checking

    def pieces(self: Any, source: Any) -> Any:
        for part in original(self, source):
            multipliers = checking(self.width, self.input_bits).multipliers
            yield (*part[:-1], multipliers if self.input_bits == 8 else part[-1])

    patch.setattr(static_matrix.StaticMatrix, "_inputs", divided)
    patch.setattr(static_matrix.StaticMatrix, "pieces", pieces)
    patch.setattr(
        static_matrix.StaticMatrix, "restored", lambda self, t: super(type(self), self).restored(t[:2])
    )


def wrong_rest_scale(patch: Patch) -> None:
    """The second 8 bits are taken for 256ths of the first, which are 254ths."""

    def op(write: Any, graph: Any, name: str, *inputs: Any, **attributes: Any) -> Any:
        if name == "DequantizeLinear" and inputs[1].name.endswith(".input_rest_scale"):
            inputs = (inputs[0], graph.constant(1 / 4096, torch.float32), *inputs[2:])
        return write(name, *inputs, **attributes)

    operation(patch, op)


@one_in(4)
@pytest.mark.parametrize("target", ["cpu", pytest.param("portable", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "sabotage",
    [
        wrong_input_scale,
        smoothed_weights_alone,
        wrong_rest_scale,
        pytest.param(wrong_zero_point, marks=pytest.mark.slow),
        pytest.param(smoothed_inputs_alone, marks=pytest.mark.slow),
    ],
)
def test_sabotage_of_static_scales_is_caught(
    sabotage: Any, target: str, origin: Path, tmp_path: Path, monkeypatch: Patch
) -> None:
    sabotage(monkeypatch)
    with pytest.raises(VerificationError):
        exported(origin, tmp_path / "x", target=target)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_kernel_that_adds_errors_to_static_products_is_caught(
    origin: Path, tmp_path: Path, monkeypatch: Patch
) -> None:
    original = rounded_products._stepped
    monkeypatch.setattr(
        rounded_products, "_stepped", lambda x, *static: 0.75 * x + 0.25 * original(x, *static)
    )
    with pytest.raises(
        VerificationError, match=r"MatMul.*: ONNX Runtime's error from rounding .* 4\.\d times"
    ):
        exported(origin, tmp_path / "x")


@pytest.mark.parametrize("bits", [8, 16])
def test_inputs_are_rounded_to_their_bits(bits: int) -> None:
    x = torch.randn(200, 48, generator=torch.Generator().manual_seed(3))
    x[:, 5] *= 30
    scales = searched_inputs(x, torch.randn(32, 48), PER_ROW, bits)
    error = (scales.rounded(x) - x).norm() / x.norm()
    assert error < {8: 1e-2, 16: 1e-3}[bits]
    assert torch.equal(scales.rounded(torch.zeros(1, 48)), torch.zeros(1, 48))


def test_multipliers_bring_columns_nearer_to_one_range() -> None:
    x = torch.randn(200, 48, generator=torch.Generator().manual_seed(3))
    x[:, 5] *= 30
    scales = searched_inputs(x, torch.randn(32, 48), PER_ROW, 8)
    before, after = (each.abs().amax(0) for each in (x, x * scales.multipliers))
    assert after.max() / after.median() < 0.3 * before.max() / before.median()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "int4"}, "activations applies only to precision int8\n  value: int4"),
        ({"target": "cuda"}, "activations static applies only to targets that multiply 8-bit integers"),
        ({"weights": "random"}, "activations static needs real weights"),
        ({"activations": "statik"}, "activations 'statik' is unknown\n  Did you mean 'static'"),
    ],
)
def test_static_scales_that_cannot_be_had_are_refused(
    options: dict[str, Any], message: str, origin: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as caught:
        exported(origin, tmp_path / "x", **{"activations": "static", **options})
    assert str(caught.value).startswith(message)
    assert not list(tmp_path.iterdir())


def test_a_layer_that_calibration_does_not_reach_is_refused(tmp_path: Path) -> None:
    spec, name = bert(), "encoder.blocks.0.unused.weight"
    model, ids = assemble(spec), torch.ones(1, 4, dtype=torch.int64)
    roundings = {name: Rounding(PER_ROW, torch.float32, 8, (name,))}
    examples = [{"input_ids": ids, "attention_mask": ids}]
    with pytest.raises(UserError, match=f"value: {name}, which calibration did not reach"):
        rounded_for(spec, RandomWeights(model, spec), roundings, examples, tmp_path, lambda stage: None)


SHARED = bert(encoder={"layers": [{"repeat": 2, "shared": True}], "block": BLOCK})


@pytest.mark.parametrize(("spec", "value"), [(SHARED, "shared layers"), (gpt2(), "decoder")])
def test_models_whose_inputs_have_no_one_scale_are_refused(spec: Model, value: str) -> None:
    plan = Plan.make(spec, ExportOptions(precision="int8", activations="static"))
    with pytest.raises(UserError, match=f"value: {value}"):
        with_activations(plan, None)
    free = Plan.make(spec, ExportOptions(precision="int8"))
    assert with_activations(free, None) == free
