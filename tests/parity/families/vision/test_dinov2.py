"""DINOv2, with and without registers, against transformers."""

from __future__ import annotations

from typing import Any, ClassVar

import onnxruntime
import pytest
import torch
import transformers as hf
from hypothesis import strategies as st
from PIL import Image
from sklearn.datasets import load_sample_images

from exporters.export import export
from exporters.preprocessing.images import Pixels, read_images
from exporters.steps.options import ExportOptions
from specs.language.load import load
from tests.parity.families.draws import FLAG
from tests.parity.families.family import RightPaddedTests
from tests.parity.families.harness import TOLERANCE
from tests.parity.families.vision_tests import draw_patches
from tests.parity.reference import build, difference
from tests.thinned import one_in
from zoo.configs.exporting import write_config
from zoo.configs.importing import import_spec
from zoo.families.common.template import UnfitError
from zoo.families.registry import family

CONFIGS: dict[str, Any] = {
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


class TestDinov2(RightPaddedTests):
    model_class = hf.Dinov2Model
    configs: ClassVar[Any] = CONFIGS
    refusals: ClassVar[Any] = (
        ("image_size", [32, 24], "must be a whole number", "square"),
        ("mlp_ratio", 2.5, "must be a whole number"),
        ("drop_path_rate", 0.1, "must be 0.0", "without some of the layers"),
        ({"architectures": ["Dinov2ForImageClassification"]}, "must not name Dinov2ForImageClassification, whose classifier", "Dinov2Model"),
        ("architectures", ["Dinov2Backbone"], "must name a supported class", "Dinov2Model"),
    )  # fmt: skip

    @staticmethod
    def draw(data):
        fields = draw_patches(
            data, mlp_ratio=st.integers(1, 5), use_swiglu_ffn=FLAG, qkv_bias=FLAG,
            layerscale_value=st.sampled_from([1e-5, 0.1, 1.0]),
        )  # fmt: skip
        return {name: value for name, value in fields.items() if name != "intermediate_size"}


class TestDinov2WithRegisters(TestDinov2):
    """Training alone reads the mask token."""

    model_class = hf.Dinov2WithRegistersModel
    configs = {name: {**values, "num_register_tokens": REGISTERS[name]} for name, values in CONFIGS.items()}
    options = {**TestDinov2.options, "without": ("embeddings.mask_token",)}
    refusals = ()

    @staticmethod
    def draw(data):
        return TestDinov2.draw(data) | {"num_register_tokens": st.sampled_from([1, 4])}


@pytest.mark.slow
def test_photographs(tmp_path):
    config = hf.Dinov2WithRegistersConfig(
        **{**CONFIGS["gated"], "image_size": 28, "patch_size": 4, "num_channels": 3}
    )
    reference = build(hf.Dinov2WithRegistersModel, config, 1)
    processor = hf.BitImageProcessorPil(
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


@one_in(2)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("registers", [0, 4])
def test_published_counts_are_ours_and_the_mask_token(size, registers):
    spec = load(f"dinov2-with-registers-{size}" if registers else f"dinov2-{size}")
    config = write_config(spec)
    classes = (
        (hf.Dinov2WithRegistersConfig, hf.Dinov2WithRegistersModel)
        if registers
        else (hf.Dinov2Config, hf.Dinov2Model)
    )
    with torch.device("meta"):
        reference = classes[1](classes[0].from_dict({**config, "use_mask_token": True}))
    count = sum(parameter.numel() for parameter in reference.parameters())
    assert count == SIZES[size] + registers * spec.d_model
    assert count == (spec.expect.parameters or 0) + spec.d_model


@pytest.mark.parametrize("kind", ["small", "giant"])
def test_a_feed_forward_of_another_width_has_no_field(kind):
    spec = load(f"dinov2-{kind}", ["encoder.block.feed_forward.hidden=1001", "expect={}"])
    with pytest.raises(UnfitError, match=r"feed_forward\.hidden 1001: it follows from a whole mlp_ratio"):
        family("dinov2").config(spec, "Dinov2Model")
