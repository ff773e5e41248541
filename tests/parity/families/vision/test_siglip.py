"""SigLIP against transformers."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import torch
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import ACTIVATION, FEW_LAYERS, FLAG, VOCAB
from tests.parity.families.encoder_tests import EPS
from tests.parity.families.family import RightPaddedTests
from tests.parity.families.pairs import PairTests
from tests.parity.reference import assert_close, build, load
from zoo.configs.importing import import_spec

SPECIAL = dict(pad_token_id=1, bos_token_id=1, eos_token_id=2)


class TestSiglip(PairTests):
    model_class = hf.SiglipModel
    configs = {
        "equal widths": dict(
            text_config=dict(
                vocab_size=61, hidden_size=24, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17,
                max_position_embeddings=12, projection_size=24, **SPECIAL,
            ),
            vision_config=dict(
                hidden_size=24, num_hidden_layers=2, num_attention_heads=4, intermediate_size=33, image_size=18, patch_size=4,
            ),
        ),
        "one layer": dict(
            text_config=dict(
                vocab_size=40, hidden_size=20, num_hidden_layers=1, num_attention_heads=5, intermediate_size=50,
                max_position_embeddings=7, hidden_act="gelu", layer_norm_eps=1e-3, projection_size=20, **SPECIAL,
            ),
            vision_config=dict(
                hidden_size=20, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, image_size=8, patch_size=8,
                num_channels=1, hidden_act="relu", layer_norm_eps=1e-5,
            ),
        ),
    }  # fmt: skip
    refusals = (
        ("text_config.projection_size", 25, "must be 24"),
        ("vision_config.vision_use_head", False, "must be true"),
    )

    @staticmethod
    def draw(data):
        width = 2 * 3 * data.draw(st.integers(1, 5), "sixth of the width")
        shared = dict(
            hidden_act=data.draw(ACTIVATION, "activation"), layer_norm_eps=data.draw(EPS, "eps"), hidden_size=width,
            num_hidden_layers=FEW_LAYERS, num_attention_heads=st.sampled_from([1, 2, 3]),
            intermediate_size=st.integers(1, 50),
        )  # fmt: skip
        return dict(
            text_config=dict(
                vocab_size=VOCAB,
                projection_size=width,
                max_position_embeddings=st.integers(2, 20),
                **shared,
                **SPECIAL,
            ),
            vision_config=dict(image_size=st.integers(8, 20), patch_size=st.integers(3, 8), **shared),
        )


def test_the_encoder_of_images_of_a_whole_checkpoint(tmp_path):
    reference = build(hf.SiglipModel, TestSiglip.configured("one layer"), 1)
    reference.save_pretrained(tmp_path)
    images = {**reference.config.vision_config.to_dict(), "architectures": ["SiglipVisionModel"]}
    (tmp_path / "config.json").write_text(json.dumps(images))
    pixels = torch.randn(2, 1, 8, 8)
    with torch.no_grad():
        found = load(import_spec(tmp_path), tmp_path)(pixels)
        assert_close(found.pooler_output, reference.vision_model(pixels).pooler_output)


class TestSiglipVision(RightPaddedTests):
    model_class = hf.SiglipVisionModel
    configs = {
        name: dict(values["vision_config"], vision_use_head=name == "equal widths")
        for name, values in TestSiglip.configs.items()
    }
    refusals = (
        ("hidden_act", "gellu", "is not supported"),
        ("architectures", ["CLIPVisionModel"], "Choose from: SiglipVisionModel"),
        ("num_register_tokens", 4, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        return TestSiglip.draw(data)["vision_config"] | dict(vision_use_head=FLAG)


class TestSiglipClassifier(RightPaddedTests):
    """The head of the encoder of images is stored, and not read."""

    model_class = hf.SiglipForImageClassification
    configs = {name: {**values, "num_labels": 3} for name, values in TestSiglip.configs.items()}
    options = dict(without=("vision_model.head",))
    refusals: ClassVar[Any] = (("vision_config.hidden_act", "gellu", "is not supported"),)
