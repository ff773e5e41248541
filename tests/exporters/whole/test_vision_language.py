"""Exports of vision-language models: three graphs, verified with images at any place, and run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from exporters.runtime.embedding import with_placeholders
from exporters.runtime.exported import open_export
from exporters.runtime.generation import Generator
from specs.base.errors import UserError
from specs.language.load import load
from specs.model.model import Model
from tests.exporters.models import written
from tests.exporters.reduced_presets import filled
from tests.thinned import one_in
from tests.zoo.tiny import BLOCK, llava, packed
from zoo.components.router import Router

CONNECTORS: dict[str, dict[str, Any]] = {
    "mlp": {"kind": "mlp", "token": 19, "hidden": 10},
    "class token": {"kind": "linear", "token": 0, "class_token": True},
    "pixel shuffle": {"kind": "linear", "token": 3, "shuffle": 2, "norm": {"kind": "rms_norm"}, "bias": False},
    "norm of joined vectors": {"kind": "mlp", "token": 3, "shuffle": 2, "joined_norm": {"kind": "layer_norm"}},
    "resampler": {
        "kind": "resampler", "token": 19, "norm": {"kind": "layer_norm"},
        "projection": {"kind": "mlp", "hidden": 10, "activation": "gelu"},
        "queries": 3, "layers": 2,
        "block": {
            "norm": {"kind": "rms_norm"},
            "attention": {"kind": "grouped_query", "heads": 4, "kv_heads": 2, "sinks": True},
            "feed_forward": {"kind": "gated", "hidden": 12, "activation": "silu"},
        },
    },
}  # fmt: skip


@one_in(6)
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


WITHIN_IMAGES: dict[str, Any] = {"decoder": {"layers": 2, "block": BLOCK, "bidirectional": "image"}}
POOLED: dict[str, Any] = {
    "connector": {"kind": "linear", "token": 19, "pool": 2, "norm": {"kind": "rms_norm"}, "bias": False},
    "image": {
        "d_model": 12, "position": {"kind": "learned"},
        "embedding": {"kind": "patches", "image_size": 12, "patch_size": 3},
        "layers": 2, "block": BLOCK,
    },
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"target": "cpu"},
        {},
        {"target": "cpu", "precision": "int4"},
        {"target": "cuda", "precision": "fp16"},
        {"target": "tensorrt", "cache_length": 20},
    ],
    ids=str,
)
def test_images_seen_in_both_directions_are_verified(options: dict[str, Any], tmp_path: Path) -> None:
    spec = llava(**WITHIN_IMAGES, **POOLED)
    result = written(spec, tmp_path / "x", **options)
    assert result.verification is not None
    graphs = json.loads((tmp_path / "x/export.json").read_text())["graphs"]
    assert "tokens_ahead" in graphs["embedding.onnx"]["outputs"]
    assert "tokens_ahead" in graphs["model.onnx"]["inputs"]
    images = torch.randn((1, 3, 12, 12), generator=torch.Generator().manual_seed(4))
    prompt = with_placeholders(spec, [[1, 19, 2]], 1)
    found = Generator(open_export(tmp_path / "x")).generate(prompt, 6, images=images.numpy())
    if "precision" not in options:
        model, ids = filled(spec), torch.tensor(prompt)
        with torch.no_grad():
            assert (
                int(model(ids, pixel_values=images).logits[0, -1].argmax()) == found.continuations[0].ids[0]
            )


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, {"target": "cpu"}, {"target": "tensorrt", "cache_length": 20}], ids=str
)
def test_prompts_seen_in_both_directions_are_verified(options: dict[str, Any], tmp_path: Path) -> None:
    block = {**BLOCK, "attention": {"kind": "multi_head", "heads": 2, "window": 3}}
    spec = llava(decoder={"layers": 2, "block": block, "bidirectional": "prompt"})
    result = written(spec, tmp_path / "x", **options)
    assert result.verification is not None
    images = torch.randn((1, 3, 7, 7), generator=torch.Generator().manual_seed(4))
    prompt = with_placeholders(spec, [[1, 19, 2]], 1)
    found = Generator(open_export(tmp_path / "x")).generate(prompt, 4, images=images.numpy())
    model, ids, past = filled(spec), torch.tensor(prompt), None
    for token in found.continuations[0].ids:
        with torch.no_grad():
            outputs = model(ids, past_key_values=past, pixel_values=images if past is None else None)
        assert int(outputs.logits[0, -1].argmax()) == token
        ids, past = torch.tensor([[token]]), outputs.present_key_values


@pytest.mark.slow
def test_a_table_of_8_bits_alone_in_its_graph_is_verified(tmp_path: Path) -> None:
    spec = llava(d_model=64, vocab_size=128)
    assert written(spec, tmp_path / "x", precision="int8", target="tensorrt").verification is not None


@pytest.mark.slow
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


@one_in(2)
@pytest.mark.parametrize("make", [llava, packed])
def test_images_are_compared_beside_rows_that_no_router_decides(
    make: Callable[..., Model], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def margin(router: Router, logits: torch.Tensor) -> torch.Tensor:
        """That of every row but the first: B T E -> B T."""
        return torch.arange(len(logits))[:, None].expand(logits.shape[:2]).float()

    monkeypatch.setattr(Router, "margin", margin)
    mixture = {"kind": "mixture", "experts": 4, "top_k": 2, "expert": BLOCK["feed_forward"]}
    decoder = {"layers": 1, "block": {**BLOCK, "feed_forward": mixture}}
    result = written(make(decoder=decoder), tmp_path / "x")
    assert result.verification is not None
    seen = [each for each in result.verification.comparisons if "rows" in each.shape]
    assert {"image_features", "logits"} <= {each.output for each in seen}


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


@pytest.mark.slow
def test_images_are_read_by_the_graph_that_the_default_layout_has(tmp_path: Path) -> None:
    written(llava(), tmp_path / "x")
    session = Generator(open_export(tmp_path / "x")).embedder
    assert session is not None
    none = session.embed(np.array([[1, 2]], np.int64))
    assert {name: value.shape for name, value in none.items()} == {"inputs_embeds": (1, 2, 8)}


SMOLVLM = [
    "vocab_size=30", "d_model=24", "context_length=24", "expect={}",
    "image.d_model=12", "image.embedding.image_size=8", "image.embedding.patch_size=2", "image.layers=1",
    "image.block.attention.heads=3", "image.block.feed_forward.hidden=17",
    "decoder.layers=1", "decoder.block.attention.heads=4", "decoder.block.attention.kv_heads=2",
    "decoder.block.feed_forward.hidden=33", "connector.token=7", "connector.shuffle=2",
]  # fmt: skip
"""What makes SmolVLM tiny."""


def test_transformers_js_has_the_images_of_each_row_apart(tmp_path: Path) -> None:
    result = written(load("smolvlm-256m", SMOLVLM), tmp_path / "x", layout="transformers-js")
    assert result.verification is not None
    graph = json.loads((tmp_path / "x/export.json").read_text())["graphs"]["onnx/vision_encoder.onnx"]
    assert graph["inputs"]["pixel_values"] == ["batch_size", "num_images", 3, 8, 8]
    assert graph["outputs"]["image_features"] == ["batch_size", "num_images", 4, 24]
    assert "new Float32Array(192), [1, 1, 3, 8, 8])" in (tmp_path / "x/README.md").read_text()


@pytest.mark.parametrize(
    ("layout", "reason"),
    [
        ("optimum", "it has no class for decoders that read images"),
        ("genai", "fits no class of any known family"),
    ],
)
def test_clients_without_such_models_are_named(layout: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=reason):
        written(llava(), tmp_path / "x", layout=layout)


def test_transformers_js_cannot_see_images_in_both_directions(tmp_path: Path) -> None:
    reason = "cannot load tiny-llava: it does not tell its decoder which tokens are of images"
    with pytest.raises(UserError, match=reason):
        written(llava(**WITHIN_IMAGES), tmp_path / "x", layout="transformers-js")
