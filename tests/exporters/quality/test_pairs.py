"""Images with their texts: what is read of them, and the quality of dual encoders and vision-language models on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from exporters.export import export
from exporters.exported.model_source import model_source
from exporters.quality.budget import LIMITS, Budget
from exporters.quality.inputs import random_inputs, representative
from exporters.quality.measures import match_agreement
from exporters.quality.outputs import judged_positions
from exporters.quality.quality import QualityError
from exporters.runtime.text import TextTokenizer
from exporters.steps.manifest import Export
from exporters.steps.options import ExportOptions
from exporters.verification.cases import Batch, Case
from specs.base.errors import UserError
from specs.model.model import Model
from tests.cli.program import as_json
from tests.exporters.quality import checkpoints
from tests.thinned import one_in
from tests.zoo.tiny import llava

SAMPLE = 12
"""The number of images with texts."""


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoints.photographs(tmp_path_factory.mktemp("images") / "photographs", SAMPLE)


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoints.clip(tmp_path_factory.mktemp("clip"))


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoints.llava(tmp_path_factory.mktemp("llava"))


def exported(origin: Path, directory: Path, **options: Any) -> Export:
    return export(model_source(str(origin)).spec, directory, ExportOptions(weights=str(origin), **options))


def spec_of(origin: Path) -> Model:
    return model_source(str(origin)).spec


@pytest.fixture(scope="module")
def text() -> TextTokenizer:
    return TextTokenizer(checkpoints.tokenizer(), Path("tokenizer.json"))


@pytest.mark.slow
def test_a_dual_encoder_is_judged_by_its_vectors(clip: Path, photographs: Path, tmp_path: Path) -> None:
    found = exported(clip, tmp_path / "a", precision="int8", calibrate=photographs).quality
    assert found is not None
    assert found.inputs == f"photographs, {SAMPLE - SAMPLE // 3} images with texts"
    assert found.figures.keys() == {"cosine", "least_cosine", "same_matches"}
    assert found.budget == Budget("cosine", LIMITS["int8"].min_cosine, "int8")
    assert 0.99 < found.figures["cosine"] < 1


@pytest.mark.slow
def test_past_the_budget_the_costly_layers_of_both_encoders_are_named(
    clip: Path, photographs: Path, tmp_path: Path
) -> None:
    with pytest.raises(
        QualityError, match=r"mean cosine to the float model is .*; at least 1 is required"
    ) as caught:
        exported(clip, tmp_path / "b", precision="int8", calibrate=photographs, min_cosine=1.0)
    assert {each.part for each in caught.value.quality.layers} >= {"text.blocks.0", "image.blocks.1"}


@pytest.mark.slow
def test_a_vision_language_model_is_judged_on_text_after_images(
    seeing: Path, photographs: Path, tmp_path: Path
) -> None:
    found = exported(seeing, tmp_path / "a", precision="int8", calibrate=photographs).quality
    assert found is not None
    assert found.inputs == f"photographs, {SAMPLE - SAMPLE // 3} images with texts"
    assert found.figures.keys() == {"kl", "top_token", "perplexity", "reference_perplexity"}
    assert 0 < found.figures["kl"] < LIMITS["int8"].max_kl


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"precision": "int4", "max_kl": 2.0},
        {"precision": "int4", "rounding": "nearest", "max_kl": 2.0},
        {"precision": "int8", "logits": "last"},
        {"precision": "fp16", "target": "cuda"},
        {"precision": "int8", "layout": "transformers-js"},
        {"precision": "int8", "target": "tensorrt", "cache_length": 90},
        {"precision": "int8", "target": "cpu", "cache_precision": "int8"},
        {"budget": "6.5bits", "precision": "int4", "max_kl": 2.0},
    ],
    ids=str,
)  # fmt: skip
def test_every_way_to_round_a_vision_language_model(
    options: dict[str, Any], seeing: Path, photographs: Path, tmp_path: Path
) -> None:
    found = exported(seeing, tmp_path / "a", calibrate=photographs, **options).quality
    assert found is not None
    assert 0 < found.figures["kl"] < 2


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["int8", "int4"])
def test_images_of_any_size(precision: str, photographs: Path, tmp_path: Path) -> None:
    origin = checkpoints.qwen2_vl(tmp_path / "origin")
    found = exported(origin, tmp_path / "a", precision=precision, calibrate=photographs, max_kl=2.0).quality
    assert found is not None
    assert found.inputs == f"photographs, {SAMPLE - SAMPLE // 3} images with texts"
    assert 0 < found.figures["kl"] < 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"precision": "int4"},
        {"precision": "int4", "rounding": "nearest", "min_cosine": 0.5},
        {"precision": "fp16"},
        {"precision": "int8", "layout": "transformers-js"},
        {"budget": "6.5bits", "precision": "int4"},
    ],
    ids=str,
)  # fmt: skip
def test_every_way_to_round_a_dual_encoder(
    options: dict[str, Any], clip: Path, photographs: Path, tmp_path: Path
) -> None:
    found = exported(clip, tmp_path / "a", calibrate=photographs, **options).quality
    assert found is not None
    assert 0.5 < found.figures["cosine"] < 1


def test_scores_of_images_are_not_judged() -> None:
    ids = torch.tensor([[5, 9, 9, 6, 9, 9, 7, 8], [9, 9, 9, 9, 1, 2, 3, 0]])
    mask = torch.ones_like(ids)
    mask[1, 7] = 0
    case = Case("judged", Batch("input_ids", ids, mask), placeholder=9)
    judged = judged_positions(case, torch.zeros(2, 8, 3)).to(torch.int64)
    assert judged.tolist() == [[0, 0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1, 0]]


def test_matches_agree_where_the_nearest_of_the_other_kind_is_the_same() -> None:
    texts, images = torch.eye(3), torch.eye(3)
    assert match_agreement((texts, images), (texts * 2, images)) == 1
    swapped = images[[1, 0, 2]]
    assert match_agreement((texts, images), (texts, swapped)) == pytest.approx(1 / 3)


@pytest.mark.slow
def test_without_images_there_is_nothing_to_judge_on(seeing: Path, tmp_path: Path) -> None:
    found = exported(seeing, tmp_path / "a", precision="int8")
    assert found.quality is None
    assert found.unjudged.endswith(
        "reads images with their texts, and the corpus has no images. Give a directory of images, each with its text in a "
        ".txt file of the same name, or a .npz file with arrays input_ids and pixel_values."
    )


@one_in(2)
@pytest.mark.parametrize("architecture", ["seeing", "clip"])
def test_random_weights_are_judged_on_random_images(
    architecture: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    spec = spec_of(request.getfixturevalue(architecture))
    found = random_inputs(spec)
    assert found.description == "random images and token ids, seed 0"
    assert sum(len(each["pixel_values"]) for each in found.judged) == 12
    export(spec, tmp_path / "x", ExportOptions(precision="int8", verify=False))
    figures = as_json("eval", str(tmp_path / "x"))["figures"]
    assert figures.get("kl", 0) < 0.1
    assert figures.get("cosine", 1) > 0.98


def test_images_come_with_the_rows_that_have_their_placeholders(tmp_path: Path) -> None:
    spec = llava()
    ids = np.array([[1, *[19] * 4, 2, 3, 4, 5, 6], [*[19] * 8, 1, 2], [1, *[19] * 4, 2, 0, 0, 0, 0]])
    mask = np.ones_like(ids)
    mask[2, 6:] = 0
    pixels = np.random.default_rng(1).random((4, 3, 7, 7), np.float32)
    np.savez(tmp_path / "x.npz", input_ids=ids, attention_mask=mask, pixel_values=pixels)
    found = representative(spec, tmp_path / "x.npz", None)
    rows = [*found.calibration, *found.judged]
    assert [len(row["pixel_values"]) for row in rows] == [1, 2, 1]
    assert [row["input_ids"].shape[1] for row in rows] == [10, 10, 6]
    assert np.array_equal(torch.cat([row["pixel_values"] for row in rows]).numpy(), pixels)


ROWS = np.array([[1, 19, 19, 19, 19, 2]] * 3)
PIXELS = np.zeros((3, 3, 7, 7), np.float32)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (dict(input_ids=ROWS, pixel_values=PIXELS[:2]), "every image has its placeholders among the tokens\n  value: 2 images, and 3 in input_ids"),
        (dict(input_ids=ROWS[:, :5], pixel_values=PIXELS), "row 0: must have text after the image"),
        (dict(input_ids=ROWS), "must have an array pixel_values, the model's input"),
        (dict(input_ids=ROWS, pixel_values=PIXELS[:, :, :6]), "pixel_values must be numbers, examples x 3 x 7 x 7"),
        (dict(input_ids=ROWS + 50, pixel_values=PIXELS[:0]), "token ids must be below the vocab_size"),
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit_are_refused(arrays: dict[str, Any], message: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(UserError) as caught:
        representative(llava(), tmp_path / "x.npz", None)
    assert message in str(caught.value)


def test_files_that_do_not_fit_are_refused(
    seeing: Path, photographs: Path, text: TextTokenizer, tmp_path: Path
) -> None:
    spec = spec_of(seeing)

    def refused(given: Path, tokenizer: TextTokenizer | None) -> str:
        with pytest.raises(UserError) as caught:
            representative(spec, given, tokenizer)
        return str(caught.value)

    assert "text needs a tokenizer" in refused(photographs, None)
    (tmp_path / "book.txt").write_text("Once.")
    assert "reads images with their texts\n  value: book.txt\n  Give a directory of images" in refused(
        tmp_path / "book.txt", text
    )
    (tmp_path / "a.png").write_bytes((photographs / "00.png").read_bytes())
    assert (
        f"a.png: must have its text beside it\n  value: none\n  Write it to {tmp_path / 'a.txt'}."
        in refused(tmp_path / "a.png", text)
    )
    (tmp_path / "a.txt").write_text("")
    assert "must have text after the image" in refused(tmp_path / "a.png", text)
