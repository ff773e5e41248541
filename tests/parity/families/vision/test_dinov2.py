"""DINOv2, with and without registers, against transformers."""

from __future__ import annotations

from typing import Any

import onnxruntime
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from sklearn.datasets import load_sample_images
from transformers import (
    BitImageProcessorPil,
    Dinov2Config,
    Dinov2Model,
    Dinov2WithRegistersConfig,
    Dinov2WithRegistersModel,
)

from exporters.export import export
from exporters.preprocessing.images import Pixels, read_images
from exporters.steps.options import ExportOptions
from specs.language.load import load
from tests.parity.families.harness import TOLERANCE, check
from tests.parity.reference import ACTIVATIONS, build, difference
from tests.thinned import one_in
from zoo.configs.exporting import write_config
from zoo.configs.importing import import_spec, spec_of_config
from zoo.families.common.config import Config, ConfigError
from zoo.families.common.template import UnfitError
from zoo.families.registry import family

CONFIGS: dict[str, dict[str, Any]] = {
    "remainder": dict(
        hidden_size=21, num_hidden_layers=3, num_attention_heads=3, mlp_ratio=2, hidden_act="gelu_new",
        layer_norm_eps=1e-3, image_size=14, patch_size=4, num_channels=3, layerscale_value=1e-5,
    ),
    "gray": dict(
        hidden_size=40, num_hidden_layers=1, num_attention_heads=5, mlp_ratio=1, hidden_act="relu",
        layer_norm_eps=1e-6, image_size=9, patch_size=3, num_channels=1, qkv_bias=False,
    ),
    "gated": dict(
        hidden_size=12, num_hidden_layers=2, num_attention_heads=2, mlp_ratio=4, use_swiglu_ffn=True,
        image_size=8, patch_size=8, num_channels=4, hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.3,
    ),
}  # fmt: skip
REGISTERS = {"remainder": 1, "gray": 7, "gated": 4}
MASK = ("embeddings.mask_token",)
"""Read only by training."""


@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    check(Dinov2Model, Dinov2Config(**CONFIGS[name]), tmp_path, sides=("right",))


@one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_registers(name, tmp_path):
    config = Dinov2WithRegistersConfig(**CONFIGS[name], num_register_tokens=REGISTERS[name])
    check(Dinov2WithRegistersModel, config, tmp_path, sides=("right",), without=MASK)


def test_photographs(tmp_path):
    config = Dinov2WithRegistersConfig(
        **{**CONFIGS["gated"], "image_size": 28, "patch_size": 4, "num_channels": 3}
    )
    reference = build(Dinov2WithRegistersModel, config, 1)
    processor = BitImageProcessorPil(
        size={"shortest_edge": 32}, crop_size={"height": 28, "width": 28}, resample=3,
        image_mean=[0.485, 0.456, 0.406], image_std=[0.229, 0.224, 0.225],
    )  # fmt: skip
    for each in (reference, processor):
        each.save_pretrained(tmp_path / "reference")
    spec = import_spec(tmp_path / "reference")
    export(spec, tmp_path / "onnx", ExportOptions(weights=str(tmp_path / "reference")))
    photographs = [Image.fromarray(image) for image in load_sample_images().images]
    paths = [tmp_path / "temple.png", tmp_path / "flower.png"]
    for photograph, path in zip(photographs, paths, strict=True):
        photograph.save(path)
    pixels, _ = read_images(paths, Pixels.beside(tmp_path / "reference"), spec)
    session = onnxruntime.InferenceSession(
        tmp_path / "onnx" / "model.onnx", providers=["CPUExecutionProvider"]
    )
    found = session.run(["last_hidden_state", "pooler_output"], {"pixel_values": pixels})
    with torch.no_grad():
        expected = reference(**processor(photographs, return_tensors="pt"))
    for ours, theirs in zip(found, (expected.last_hidden_state, expected.pooler_output), strict=True):
        assert difference(torch.from_numpy(ours), theirs) <= TOLERANCE


SIZES = {"small": 22_056_576, "base": 86_580_480, "large": 304_368_640, "giant": 1_136_480_768}


@one_in(3)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("registers", [0, 4])
def test_published_counts_are_ours_and_the_mask_token(size, registers):
    spec = load(f"dinov2-with-registers-{size}" if registers else f"dinov2-{size}")
    config = write_config(spec)
    classes = (
        (Dinov2WithRegistersConfig, Dinov2WithRegistersModel) if registers else (Dinov2Config, Dinov2Model)
    )
    with torch.device("meta"):
        reference = classes[1](classes[0].from_dict({**config, "use_mask_token": True}))
    count = sum(parameter.numel() for parameter in reference.parameters())
    assert count == SIZES[size] + registers * spec.d_model
    assert count == (spec.expect.parameters or 0) + spec.d_model


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"image_size": [32, 24]}, "image_size: must be a whole number", "square"),
    ({"mlp_ratio": 2.5}, "mlp_ratio: must be a whole number", ""),
    ({"drop_path_rate": 0.1}, "drop_path_rate: must be 0.0", "without some of the layers"),
    ({"architectures": ["Dinov2ForImageClassification"]}, "must not name Dinov2ForImageClassification, whose classifier", "Dinov2Model"),
    ({"architectures": ["Dinov2Backbone"]}, "must name a supported class", "Dinov2Model"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "rule", "remedy"), REFUSED, ids=[str(case[0]) for case in REFUSED])
def test_unsupported_values_and_classes_are_refused(change, rule, remedy):
    config = Config({"model_type": "dinov2", **change}, "config.json")
    with pytest.raises(ConfigError, match=rule) as caught:
        spec_of_config(config, name="dinov2", strict=True)
    assert remedy in str(caught.value)


@pytest.mark.parametrize("kind", ["small", "giant"])
def test_a_feed_forward_of_another_width_has_no_field(kind):
    spec = load(f"dinov2-{kind}", ["encoder.block.feed_forward.hidden=1001", "expect={}"])
    with pytest.raises(UnfitError, match=r"feed_forward\.hidden 1001: it follows from a whole mlp_ratio"):
        family("dinov2").config(spec, "Dinov2Model")


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    heads = data.draw(st.integers(1, 6), "heads")
    patch = data.draw(st.integers(1, 6), "patch_size")
    values: dict[str, Any] = dict(
        hidden_size=heads * data.draw(st.integers(2, 8), "head_width"),
        num_hidden_layers=data.draw(st.integers(1, 3), "layers"),
        num_attention_heads=heads,
        mlp_ratio=data.draw(st.integers(1, 5), "mlp_ratio"),
        use_swiglu_ffn=data.draw(st.booleans(), "use_swiglu_ffn"),
        hidden_act=data.draw(st.sampled_from(list(ACTIVATIONS)), "activation"),
        layer_norm_eps=data.draw(st.sampled_from([1e-12, 1e-2]), "eps"),
        image_size=patch + data.draw(st.integers(0, 12), "more"),
        patch_size=patch,
        num_channels=data.draw(st.integers(1, 4), "channels"),
        qkv_bias=data.draw(st.booleans(), "bias"),
        layerscale_value=data.draw(st.sampled_from([1e-5, 0.1, 1.0]), "layerscale_value"),
    )
    registers = data.draw(st.sampled_from([None, 1, 4]), "num_register_tokens")
    directory, seed = tmp_path_factory.mktemp("dinov2"), data.draw(st.integers(0, 99), "seed")
    options: dict[str, Any] = dict(seed=seed, sides=("right",), onnx=seed % 5 == 0, fuzzed=True)
    if registers is None:
        check(Dinov2Model, Dinov2Config(**values), directory, **options)
        return
    config = Dinov2WithRegistersConfig(**values, num_register_tokens=registers)
    check(Dinov2WithRegistersModel, config, directory, without=MASK, **options)
