"""Weights rounded for the inputs that their layers see: the streaming pass, and exports that take it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cli.tables.export_tables import print_export
from exporters.export import export
from exporters.exported.load_export import load_export
from exporters.exported.model_source import model_source
from exporters.graph.quantization.matrix import QuantizedMatrix
from exporters.graph.quantization.scheme import LEAST, is_table
from exporters.quality.examples import DECODED
from exporters.quality.judge import NEW_TOKENS, input_batch
from exporters.quality.pairs import random_pairs
from exporters.quality.quality_inputs import QualityInputs
from exporters.quality.runners import FloatModel
from exporters.rounding import streaming
from exporters.rounding.calibrated_weights import Rounding
from exporters.rounding.calibration import calibration_batch, pass_over
from exporters.rounding.gptq import FactoredProducts, gptq, products_of
from exporters.rounding.scales import searched
from exporters.rounding.streaming import calibrate
from exporters.runtime.exported import open_export
from exporters.steps.manifest import Export
from exporters.steps.options import ExportOptions
from exporters.verification.cases import Batch, Case
from exporters.verification.reference import full_pass
from exporters.verification.result import VerificationError
from exporters.verification.verified_model import VerifiedModel
from specs.base.errors import UserError
from specs.model.model import Model
from tests.exporters.quality import checkpoints
from tests.exporters.reduced_presets import preset, structure, structures
from tests.thinned import one_in
from tests.zoo.filled import random_model, stored_model
from tests.zoo.tiny import bert, gpt2, t5
from zoo.builder import ZooModel, assemble
from zoo.checks.stack_runner import beside
from zoo.components.spans import LstmLayer
from zoo.core.tensors import weight_tensors
from zoo.record.manifest import read_record
from zoo.weights.blocks import Blocks
from zoo.weights.random import RandomWeights

BLOCKS = Blocks(4, 32, symmetric=False)
STRUCTURES = [
    name
    for name in structures()
    for spec in [preset(name)]
    if spec.embedding_of(spec.first_stack).takes_tokens
]


def wanted(model: nn.Module) -> dict[str, Rounding]:
    gates = {gate for layer in model.modules() if isinstance(layer, LstmLayer) for gate in layer.modules()}
    linears = (each for each in model.modules() if isinstance(each, nn.Linear) and each not in gates)
    matrices = {id(each.weight) for each in linears}
    return {
        name: Rounding(BLOCKS, torch.float32)
        for name, tensor in weight_tensors(model)
        if is_table((name,)) or (id(tensor) in matrices and min(tensor.shape) >= LEAST)
    }


def batch(spec: Model, *, padded: bool = False) -> Case:
    """Rows of tokens, after images where a model reads both; both sides of an encoder-decoder have as many, with other padding."""
    if spec.image is not None:
        return calibration_batch(spec, random_pairs(spec, 3, torch.Generator().manual_seed(1)))
    read, said = (
        torch.randint(spec.vocab_size or 2, (3, 8), generator=torch.Generator().manual_seed(seed))
        for seed in (1, 2)
    )
    masks = torch.ones_like(read), torch.ones_like(said)
    if padded:
        masks[0][1, 5:] = 0
        masks[1][2, 4:] = 0
    first, second = (
        Batch("input_ids", ids, mask, torch.zeros_like(ids), beside=_beside(spec, ids))
        for ids, mask in zip((read, said), masks, strict=True)
    )
    if spec.architecture != "encoder-decoder":
        return Case("calibration", first)
    return Case("calibration", second, encoder=first)


def _beside(spec: Model, ids: torch.Tensor) -> dict[str, torch.Tensor]:
    return {
        name: tensor.float() if tensor.is_floating_point() else tensor
        for name, tensor in beside(spec, ids).items()
    }


def rounded_whole(spec: Model, case: Case) -> ZooModel:
    """The same without streaming: a filled model, whose layers are rounded one after another as their inputs come."""
    model = random_model(spec)
    names = {id(tensor): name for name, tensor in weight_tensors(model)}
    roundings, names_of = wanted(model), {id(module): path for path, module in model.named_modules()}
    for name, table in weight_tensors(model):
        if is_table((name,)):
            table.data.copy_(
                BLOCKS.restore(searched(BLOCKS, table.data, None, torch.float32), table.shape[1])
            )

    def enter(linear: nn.Linear, args: tuple[torch.Tensor]) -> None:
        name = names.pop(id(linear.weight), None)
        if name not in roundings or is_table((name,)):
            return
        (x,) = args
        path = names_of[id(linear)]
        reads = (
            path.startswith("encoder") or ".cross_attention.key" in path or ".cross_attention.value" in path
        )
        side = case.encoder if reads and case.encoder is not None else case.batch
        assert side.mask is not None
        real = side.mask == 1
        rows = x[real] if x.shape[:-1] == real.shape else x.flatten(0, -2)
        codes = gptq(BLOCKS, linear.weight.detach(), FactoredProducts.of(products_of(rows)))
        linear.weight.data.copy_(BLOCKS.restore(codes, linear.weight.shape[1]))

    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.register_forward_pre_hook(enter)
    with torch.no_grad():
        full_pass(model, case)
    return model


@one_in(4)
@pytest.mark.parametrize("make", [gpt2, bert, t5])
@pytest.mark.parametrize("padded", [False, True])
def test_streaming_equals_calibrating_the_whole_model(make: Any, padded: bool, tmp_path: Path) -> None:
    spec = make(d_model=64)
    case, model = batch(spec, padded=padded), assemble(spec)
    found = calibrate(
        model, RandomWeights(model, spec), wanted(model), pass_over(case), tmp_path,
        lambda done, count: None,
    )  # fmt: skip
    assert all(tensor.is_meta for _, tensor in weight_tensors(model))
    expected = dict(weight_tensors(rounded_whole(spec, case)))
    compared = 0
    for name in wanted(model):
        if not is_table((name,)):
            values = found.restored(name, expected[name].shape[1])
            assert values is not None
            assert torch.equal(values, expected[name])
            compared += 1
    assert compared >= 6


def test_inputs_that_matrices_share_are_scanned_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scanned = list[str]()
    monkeypatch.setattr(streaming, "check_finite", lambda rows, name: scanned.append(name))
    spec = gpt2(d_model=64)
    model = assemble(spec)
    source = RandomWeights(model, spec)
    calibrate(model, source, wanted(model), pass_over(batch(spec)), tmp_path, lambda done, count: None)
    projections = {f"decoder.blocks.0.attention.{part}.weight" for part in ("query", "key", "value")}
    assert projections <= wanted(model).keys()
    assert len(projections.intersection(scanned)) == 1
    assert scanned.count("decoder.blocks.0.attention.output.weight") == 1


@one_in(80)
@pytest.mark.parametrize("name", STRUCTURES)
def test_every_structure_can_be_rounded_for_its_inputs(name: str, tmp_path: Path) -> None:
    spec = structure(name)
    model, told = assemble(spec), list[tuple[int, int]]()
    roundings = wanted(model)
    found = calibrate(
        model, RandomWeights(model, spec), roundings, pass_over(batch(spec)), tmp_path,
        lambda done, count: told.append((done, count)),
    )  # fmt: skip
    assert set(found.calibrated) == set(roundings)
    assert told[-1] == (len(roundings), len(roundings))
    for each in roundings:
        codes = found.codes(each)
        assert codes is not None
        assert codes.blocks == BLOCKS


@pytest.fixture(scope="module")
def origins(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {
        make.__name__: make(tmp_path_factory.mktemp(make.__name__))
        for make in (checkpoints.llama, checkpoints.bert, checkpoints.t5, checkpoints.vit)
    }


def exported(origin: Path, directory: Path, **options: Any) -> Export:
    settings = ExportOptions(weights=str(origin), precision="int4", **options)
    return export(model_source(str(origin)).spec, directory, settings)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", "portable", "cuda"])
@pytest.mark.parametrize("family", ["llama", "bert", "t5"])
def test_int4_of_real_weights_loses_less_than_rounding_to_nearest(
    origins: dict[str, Path], family: str, target: str, tmp_path: Path
) -> None:
    loss = {}
    for rounding in ("nearest", "gptq"):
        found = exported(origins[family], tmp_path / rounding, target=target, rounding=rounding)
        assert found.quality is not None
        figures = found.quality.figures
        loss[rounding] = 1 - figures["cosine"] if family == "bert" else figures["kl"]
        manifest = read_record(tmp_path / rounding).manifest
        assert (manifest.calibrated_on is not None) == (rounding == "gptq")
    assert loss["gptq"] < 0.9 * loss["nearest"]


@pytest.mark.slow
def test_gptq_is_the_default_and_needs_no_verification(origins: dict[str, Path], tmp_path: Path) -> None:
    written = {}
    cases: dict[str, dict[str, Any]] = {"default": {}, "asked": {"rounding": "gptq", "verify": False}}
    for name, options in cases.items():
        exported(origins["llama"], tmp_path / name, **options)
        written[name] = (tmp_path / name / "model.onnx.data").read_bytes()
        record = json.loads((tmp_path / name / "export.json").read_text())["calibrated_on"]
        assert record["description"].startswith("the corpus of zoo")
        assert not list(tmp_path.glob(".*"))
    assert written["default"] == written["asked"]


def test_models_without_inputs_are_rounded_to_nearest_and_reported(
    origins: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_export(exported(origins["vit"], tmp_path / "out", verify=False))
    printed = " ".join(capsys.readouterr().out.split())
    assert "takes pixel_values, which text cannot provide. Give images, or a .npz file" in printed
    assert "int4 weights are rounded to nearest, because calibration needs the same inputs." in printed
    assert read_record(tmp_path / "out").manifest.calibrated_on is None


def test_without_inputs_scales_have_the_least_error_of_weights(
    origins: dict[str, Path], tmp_path: Path
) -> None:
    spec = model_source(str(origins["vit"])).spec
    errors = []
    for name, rounding in (("searched", None), ("full_range", "nearest")):
        exported(origins["vit"], tmp_path / name, verify=False, rounding=rounding)
        stored = load_export(open_export(tmp_path / name))
        wanted = stored_model(spec, origins["vit"])
        pairs = zip(stored.parameters(), wanted.parameters(), strict=True)
        errors.append(sum(float((first - second).detach().square().sum()) for first, second in pairs))
    assert 0 < errors[0] < 0.97 * errors[1]


@pytest.mark.slow
def test_images_calibrate(origins: dict[str, Path], tmp_path: Path) -> None:
    given = tmp_path / "images.npz"
    images = np.random.default_rng(0).normal(size=(9, 3, 16, 16)).astype(np.float32)
    np.savez(given, pixel_values=images)
    exported(origins["vit"], tmp_path / "out", calibrate=given)
    assert read_record(tmp_path / "out").manifest.calibrated_on is not None


@pytest.mark.slow
def test_a_calibrated_weight_that_is_stored_otherwise_is_caught(
    origins: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QuantizedMatrix, "restored", _off(QuantizedMatrix.restored))
    with pytest.raises(VerificationError, match="is stored incorrectly"):
        exported(origins["llama"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def _off(restored: Any) -> Any:
    def changed(self: Any, tensors: Any) -> torch.Tensor:
        return restored(self, tensors) * (1 + 3e-7)  # which no output shows

    return changed


@pytest.mark.parametrize(
    ("family", "options", "message"),
    [
        ("llama", {"rounding": "gtpq"}, "rounding 'gtpq' is unknown\n  Did you mean 'gptq'?"),
        ("vit", {"rounding": "gptq"}, "rounding gptq needs representative inputs\n  value: "),
    ],
)
def test_impossible_rounding_is_refused_and_nothing_written(
    origins: dict[str, Path], family: str, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as caught:
        exported(origins[family], tmp_path / "out", **options)
    assert str(caught.value).startswith(message)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_decoder_is_calibrated_on_the_models_own_output(origins: dict[str, Path]) -> None:
    spec = model_source(str(origins["t5"])).spec
    model = stored_model(spec, origins["t5"])
    inputs = QualityInputs.prepare(spec, origins["t5"], None).written_by(model, lambda stage: None)
    assert inputs.representative is not None
    assert inputs.written_by(model, lambda stage: None) is inputs
    lengths = {example["input_ids"].shape[1] for example in inputs.representative.calibration}
    assert len(lengths) > 3  # rows of a batch are padded
    for example in inputs.representative.calibration[::8]:
        start, *said = example[DECODED][0].tolist()
        encoder = input_batch(spec, example)
        assert start == 0
        assert said == FloatModel(model).greedy(encoder, start, [2], NEW_TOKENS)[:-1]


@pytest.mark.slow
def test_a_model_that_does_not_fit_in_memory_is_rounded_to_nearest(
    origins: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        VerifiedModel, "is_reduced", property(lambda self: True, lambda self, value: None), raising=False
    )
    found = exported(origins["t5"], tmp_path / "out", verify=False)
    assert found.manifest.calibrated_on is None
    assert found.unjudged == "the model itself does not fit in memory"
    with pytest.raises(UserError) as caught:
        exported(origins["t5"], tmp_path / "asked", verify=False, rounding="gptq")
    assert str(caught.value).startswith("rounding gptq needs ")
    assert not (tmp_path / "asked").exists()


def test_contradictory_options_are_refused() -> None:
    with pytest.raises(UserError, match=r"rounding applies only to precision int4 or q4f16\n  value: int8"):
        ExportOptions(precision="int8", rounding="gptq")
    with pytest.raises(
        UserError, match="rounding gptq applies only to real weights\n  value: random weights"
    ):
        ExportOptions(precision="int4", rounding="gptq")
