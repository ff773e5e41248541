"""BLIP's captions of images against transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
import transformers as hf
from hypothesis import strategies as st
from torch import Tensor

from exporters.runtime.exported import open_export
from exporters.runtime.generation import Generator
from tests.exporters.models import written
from tests.parity.families.draws import FEW_LAYERS, VOCAB
from tests.parity.families.family import RightPaddedTests
from tests.parity.families.vision_tests import ACTIVATION
from tests.parity.reference import build
from zoo.configs.importing import import_spec

IMAGES: dict[str, Any] = dict(
    hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=17, image_size=14, patch_size=4,
    layer_norm_eps=1e-3,
)  # fmt: skip
WORDS: dict[str, Any] = dict(
    vocab_size=61, hidden_size=20, num_hidden_layers=3, num_attention_heads=5, intermediate_size=33,
    max_position_embeddings=16, layer_norm_eps=1e-4, bos_token_id=1, eos_token_id=2, sep_token_id=3,
)  # fmt: skip
PUBLISHED = {
    "architectures": ["BlipForConditionalGeneration"],
    "image_text_hidden_size": 256,
    "initializer_factor": 1.0,
    "logit_scale_init_value": 2.6592,
    "model_type": "blip",
    "projection_dim": 512,
    "text_config": {
        "bos_token_id": 30522, "encoder_hidden_size": 768, "eos_token_id": 2, "hidden_act": "gelu", "hidden_size": 768,
        "is_decoder": True, "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "blip_text_model",
        "num_attention_heads": 12, "num_hidden_layers": 12, "projection_dim": 768, "sep_token_id": 102, "vocab_size": 30524,
    },
    "vision_config": {
        "dropout": 0.0, "initializer_factor": 1.0, "hidden_size": 768, "image_size": 384, "model_type": "blip_vision_model", "num_attention_heads": 12,
        "num_channels": 3, "num_hidden_layers": 12, "patch_size": 16, "projection_dim": 512,
    },
}  # fmt: skip


class BlipForConditionalGeneration(transformers.BlipForConditionalGeneration):
    """The reference, whose inputs have the names of other encoder-decoders."""

    def forward(self, pixel_values: Tensor, decoder_input_ids: Tensor) -> Any:
        return super().forward(pixel_values, decoder_input_ids)


class TestBlip(RightPaddedTests):
    model_class = BlipForConditionalGeneration
    configs = {
        "another width": dict(vision_config=IMAGES, text_config=WORDS),
        "one width": dict(
            vision_config={**IMAGES, "hidden_act": "gelu_new", "image_size": 9},
            text_config={**WORDS, "hidden_size": 24, "num_attention_heads": 2, "hidden_act": "relu"},
        ),
    }
    refusals = (
        ("text_config.is_decoder", False, "must be true"),
        ("text_config.hidden_act", "gellu", "is not supported"),
        ("tie_word_embeddings", False, "must be true"),
        ("architectures", ["BlipForQuestionAnswering"], "Choose from: BlipForConditionalGeneration"),
    )
    published = {"blip-captioning-base": PUBLISHED}

    @staticmethod
    def draw(data):
        heads = data.draw(st.integers(1, 4), "heads")
        images = {
            **IMAGES,
            "hidden_size": st.integers(2, 8).map(lambda width: 3 * width),
            "hidden_act": ACTIVATION,
            "num_hidden_layers": FEW_LAYERS,
        }
        words = {
            **WORDS, "vocab_size": VOCAB, "hidden_size": heads * data.draw(st.integers(2, 9), "width of a head"),
            "num_attention_heads": heads, "num_hidden_layers": FEW_LAYERS, "intermediate_size": st.integers(1, 50),
            "max_position_embeddings": st.integers(4, 20),
        }  # fmt: skip
        return dict(vision_config=images, text_config=words)


@pytest.mark.slow
def test_captions_are_those_of_the_reference(tmp_path):
    """From the start token of the reference, which its config has for texts."""
    config = TestBlip.configured("another width", text_config={**WORDS, "sep_token_id": 60})
    reference = build(hf.BlipForConditionalGeneration, config, 3)
    reference.save_pretrained(tmp_path / "reference")
    written(import_spec(tmp_path / "reference"), tmp_path / "x", weights=str(tmp_path / "reference"))
    images = torch.randn((2, 3, 14, 14), generator=torch.Generator().manual_seed(2))
    expected = reference.generate(images, do_sample=False, max_new_tokens=8)[:, 1:].tolist()
    found = Generator(open_export(tmp_path / "x")).generate(images.numpy(), 8, start=1)
    assert [each.ids for each in found.continuations] == expected
