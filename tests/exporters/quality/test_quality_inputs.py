"""The claim of quality as exports make it: what is judged, held to a budget, and recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exporters.export import export
from exporters.exported.model_source import model_source
from exporters.quality.budget import LIMITS, Budget, budget_of
from exporters.quality.quality import QualityError
from exporters.quality.texts import corpus
from exporters.steps.manifest import Export
from exporters.steps.options import ExportOptions
from specs.base.descriptions import field_descriptions
from specs.base.errors import UserError
from specs.files.export_options import OptionTable
from tests.exporters.quality import checkpoints
from zoo.record.manifest import read_record


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoints.llama(tmp_path_factory.mktemp("llama"))


def exported(origin: Path, directory: Path, **options: Any) -> Export:
    return export(model_source(str(origin)).spec, directory, ExportOptions(weights=str(origin), **options))


@pytest.mark.slow
def test_measurements_are_recorded(llama: Path, tmp_path: Path) -> None:
    found = exported(llama, tmp_path / "out", precision="int8")
    assert found.quality is not None
    record = read_record(tmp_path / "out")
    assert record.manifest.judged_on is not None
    assert record.manifest.judged_on.description == "the corpus of zoo, 12 x 128 tokens of 7 kinds"
    assert record.build is not None
    assert record.build.quality is not None
    assert record.build.quality.figures == found.quality.figures
    assert record.build.quality.budget is not None
    assert record.build.quality.budget.limit == LIMITS["int8"].max_kl
    assert 0 < found.quality.figures["kl"] < LIMITS["int8"].max_kl
    assert found.as_dict()["quality"]["figures"] == found.quality.figures


@pytest.mark.slow
def test_export_json_is_the_same_every_time(llama: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        exported(llama, tmp_path / name, precision="int8")
    first, second = ((tmp_path / name / "export.json").read_bytes() for name in ("a", "b"))
    assert first == second


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp16", "bf16", "int4"])
def test_every_precision_that_rounds_is_judged(llama: Path, tmp_path: Path, precision: str) -> None:
    found = exported(llama, tmp_path / "out", precision=precision)
    assert found.quality is not None
    assert found.quality.budget == Budget("kl", LIMITS[precision].max_kl, precision)


@pytest.mark.slow
def test_lossless_or_random_exports_are_not_judged(llama: Path, tmp_path: Path) -> None:
    assert exported(llama, tmp_path / "a").quality is None
    assert exported(llama, tmp_path / "b", precision="int8", verify=False).quality is None
    random = export(model_source(str(llama)).spec, tmp_path / "c", ExportOptions(precision="int8"))
    assert random.quality is None
    assert not random.unjudged
    assert read_record(tmp_path / "c").manifest.judged_on is None


@pytest.mark.slow
def test_past_the_budget_nothing_is_written(llama: Path, tmp_path: Path) -> None:
    with pytest.raises(QualityError) as caught:
        exported(llama, tmp_path / "out", precision="int4", max_kl=1e-6)
    message, quality = str(caught.value), caught.value.quality
    assert not (tmp_path / "out").exists()
    assert list(tmp_path.iterdir()) == []
    assert message.startswith("int4 loses too much: its KL divergence from the float model is ")
    assert (
        "; at most 1e-06 is allowed.\n  Layers that cost most when rounded alone: decoder.blocks." in message
    )
    assert "\n  Parts that cost most when rounded alone: " in message
    assert "\n  Rounding all weights costs " in message
    assert "Use int8, or int4 with smaller blocks" in message
    assert {each.part for each in quality.layers} >= {"decoder.blocks.0", "decoder.blocks.1"}
    assert quality.weights is not None
    assert quality.as_dict()["passed"] is False


@pytest.mark.slow
def test_a_tokenizer_is_not_needed_by_a_decoder(tmp_path: Path) -> None:
    origin = checkpoints.llama(tmp_path / "origin", text=False)
    found = exported(origin, tmp_path / "out", precision="int8")
    assert found.quality is not None
    assert found.quality.inputs == "text that the model writes, seed 0, 8 x 128 tokens"


@pytest.mark.slow
def test_a_text_is_calibrated_with(llama: Path, tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text(corpus()["prose"][:9000])
    found = exported(llama, tmp_path / "out", precision="int8", calibrate=file)
    assert found.quality is not None
    assert found.quality.inputs == "text.txt, 12 x 128 tokens"
    assert str(tmp_path) not in (tmp_path / "out" / "export.json").read_text()


@pytest.mark.slow
def test_cosines_have_a_budget_of_their_own(tmp_path: Path) -> None:
    origin = checkpoints.bert(tmp_path / "origin")
    found = exported(origin, tmp_path / "a", precision="int8")
    assert found.quality is not None
    assert found.quality.budget == Budget("cosine", LIMITS["int8"].min_cosine, "int8")
    assert found.quality.figures.keys() == {"cosine", "least_cosine", "same_neighbours"}
    with pytest.raises(
        QualityError, match=r"its mean cosine to the float model is .*; at least 1 is required"
    ):
        exported(origin, tmp_path / "b", precision="int8", min_cosine=1.0)


@pytest.mark.slow
def test_encoder_decoders(tmp_path: Path) -> None:
    origin = checkpoints.t5(tmp_path / "origin")
    found = exported(origin, tmp_path / "out", precision="fp16")
    assert found.quality is not None
    assert found.quality.figures.keys() == {"kl", "top_token", "token_error_rate"}


@pytest.mark.slow
def test_images_are_judged_where_there_are_some(tmp_path: Path) -> None:
    origin = checkpoints.vit(tmp_path / "origin")
    without = exported(origin, tmp_path / "a", precision="fp16")
    assert without.quality is None
    assert without.unjudged.endswith(
        "takes pixel_values, which text cannot provide. Give images, or a .npz file with an array pixel_values."
    )
    images = np.random.default_rng(2).random((9, 3, 16, 16), np.float32)
    np.savez(tmp_path / "images.npz", pixel_values=images)
    found = exported(origin, tmp_path / "b", precision="fp16", calibrate=tmp_path / "images.npz")
    assert found.quality is not None
    assert found.quality.figures.keys() == {"kl", "top_token"}
    assert found.quality.inputs.endswith("images.npz, 6 examples")


def test_a_bad_file_is_refused_before_writing(llama: Path, tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("Too short.")
    with pytest.raises(UserError, match="must have at least 256 tokens"):
        exported(llama, tmp_path / "out", precision="int8", calibrate=tmp_path / "short.txt")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "fp32", "max_kl": 1.0}, "max_kl applies only to real weights that are rounded and verified, but this export is fp32, which rounds nothing"),
        ({"precision": "int8", "verify": False, "calibrate": Path("x")}, "calibrate applies only to real weights that are rounded and verified, but this export is not verified"),
        ({"precision": "int8", "weights": "random", "min_cosine": 0.5}, "but this export has random weights\n  Leave it out."),
        ({"precision": "int8", "max_kl": -1.0}, "max_kl must be 0 nats or more\n  value: -1.0\n"),
        ({"precision": "int8", "max_kl": float("nan")}, "max_kl must be 0 nats or more\n  value: nan\n"),
        ({"precision": "int8", "min_cosine": 1.1}, "min_cosine must be from -1 to 1\n  value: 1.1\n"),
    ],
)  # fmt: skip
def test_contradictory_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        ExportOptions(**{"weights": "path", **options})
    assert message in str(caught.value)


def test_budgets() -> None:
    assert budget_of({"kl": 0.1, "cosine": 1.0}, "int8", None, None) == Budget(
        "kl", LIMITS["int8"].max_kl, "int8"
    )
    assert budget_of({"cosine": 1.0}, "int8", 0.3, 0.5) == Budget("cosine", 0.5, "int8")
    assert budget_of({"kl": 1.0}, "int8", 0.3, 0.5) == Budget("kl", 0.3, "int8")
    for measure, inside, outside in (("kl", 0.3, 0.31), ("cosine", 0.3, 0.29)):
        budget = Budget(measure, 0.3, "int8")
        assert budget.holds({measure: inside})
        assert not budget.holds({measure: outside})
        assert not budget.holds({measure: float("nan")})
    json.dumps(Budget("kl", 0.3, "int8").as_dict())


def test_the_help_states_the_budgets() -> None:
    texts = [field_descriptions(OptionTable)[name] for name in ("max_kl", "min_cosine")]
    for name, limits in LIMITS.items():
        for text, limit in zip(texts, (limits.max_kl, limits.min_cosine), strict=True):
            assert f"{name} {limit:g}" in text


@pytest.mark.slow
@pytest.mark.parametrize("make", [checkpoints.llama, checkpoints.t5])
def test_inputs_fit_a_cache_that_does_not_grow(make: Any, tmp_path: Path) -> None:
    origin = make(tmp_path / "origin")
    found = exported(
        origin, tmp_path / "out", precision="int8", target="tensorrt", cache_length=24, max_kl=1000.0
    )
    assert found.quality is not None
    record = read_record(tmp_path / "out").manifest.judged_on
    assert record is not None
    if make is checkpoints.llama:
        assert record.description == "the corpus of zoo, 12 x 24 tokens of 7 kinds"
