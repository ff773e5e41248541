"""Exports of vision-language models: three graphs, verified with images at any place, and run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from exporters.runtime.embedding import with_placeholders
from exporters.runtime.exported import open_export
from exporters.runtime.generation import Generator
from specs.errors import UserError
from tests.exporters.models import written
from tests.exporters.reduced_presets import filled
from tests.zoo.tiny import llava

CONNECTORS: dict[str, dict[str, Any]] = {
    "mlp": {"kind": "mlp", "token": 19, "hidden": 10},
    "class token": {"kind": "linear", "token": 0, "class_token": True},
    "pixel shuffle": {
        "kind": "linear",
        "token": 3,
        "shuffle": 2,
        "norm": {"kind": "rms_norm"},
        "bias": False,
    },
}


@pytest.mark.parametrize("name", CONNECTORS)
def test_every_connector_is_verified(name: str, tmp_path: Path) -> None:
    result = written(llava(connector=CONNECTORS[name]), tmp_path / "x")
    assert result.verification is not None
    outputs = {each.output for each in result.verification.comparisons}
    assert {"image_features", "inputs_embeds", "logits", "present"} <= outputs


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"precision": "fp16"},
        {"precision": "bf16"},
        {"precision": "int8"},
        {"precision": "int4"},
        {"target": "cpu"},
        {"target": "tensorrt", "cache_length": 20},
    ],
    ids=str,
)
def test_every_target_and_precision_is_verified(options: dict[str, str], tmp_path: Path) -> None:
    assert written(llava(), tmp_path / "x", **options).verification is not None


@pytest.mark.slow
def test_a_table_of_8_bits_alone_in_its_graph_is_verified(tmp_path: Path) -> None:
    spec = llava(d_model=64, vocab_size=128)
    assert written(spec, tmp_path / "x", precision="int8", target="tensorrt").verification is not None


def test_an_export_continues_a_prompt_about_an_image(tmp_path: Path) -> None:
    spec = llava()
    written(spec, tmp_path / "x")
    manifest = json.loads((tmp_path / "x/export.json").read_text())
    assert list(manifest["graphs"]) == ["vision_encoder.onnx", "embedding.onnx", "model.onnx"]
    images = torch.randn((1, 3, 7, 7), generator=torch.Generator().manual_seed(4))
    prompt = with_placeholders(spec, [[1, 19, 2]], 1)
    assert prompt == [[1, 19, 19, 19, 19, 2]]
    found = Generator(open_export(tmp_path / "x")).generate(prompt, 6, images=images.numpy())
    model, ids = filled(spec), torch.tensor(prompt)
    for token in found.continuations[0].ids:
        with torch.no_grad():
            assert int(model(ids, pixel_values=images).logits[0, -1].argmax()) == token
        ids = torch.cat((ids, torch.tensor([[token]])), 1)


def test_placeholders_stand_once_for_each_image_or_for_each_vector() -> None:
    spec = llava()
    assert with_placeholders(spec, [[5]], 2) == [[*[19] * 8, 5]]
    assert with_placeholders(spec, [[1, 5]], 2, prefix=[1]) == [[1, *[19] * 8, 5]]
    assert with_placeholders(spec, [[5]], 2, prefix=[1]) == [[*[19] * 8, 5]]
    assert with_placeholders(spec, [[19, 5], [6, 19]], 2) == [[*[19] * 4, 5], [6, *[19] * 4]]
    assert with_placeholders(spec, [[*[19] * 4, 5]], 1) == [[*[19] * 4, 5]]
    with pytest.raises(
        UserError, match=r"takes one placeholder for each image\n  value: 2 times token 19, for 1 image\n"
    ):
        with_placeholders(spec, [[19, 5, 19]], 1)


def test_images_are_read_by_the_graph_that_the_default_layout_has(tmp_path: Path) -> None:
    written(llava(), tmp_path / "x")
    session = Generator(open_export(tmp_path / "x")).embedder
    assert session is not None
    none = session.embed(np.array([[1, 2]], np.int64))
    assert none.shape == (1, 2, 8)


@pytest.mark.parametrize(
    ("layout", "reason"),
    [
        ("optimum", "it has no class for decoders that read images"),
        ("genai", "it loads only decoders, and the architecture is vision-language"),
    ],
)
def test_clients_without_such_models_are_named(layout: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=reason):
        written(llava(), tmp_path / "x", layout=layout)
