"""The text encoder of CLIP against transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import strategies as st
from transformers import (
    CLIPConfig,
    CLIPModel,
    CLIPTextConfig,
    CLIPTextModel,
    CLIPTextModelWithProjection,
)

from tests.parity.families.encoders import ACTIVATIONS, EPS, EncoderTests
from tests.parity.families.harness import check
from tests.parity.reference import assert_close, build, load
from zoo.configs.exporting import NoFamilyError, write_config
from zoo.configs.importing import import_spec

CONFIGS: dict[str, dict[str, Any]] = {
    "odd heads": dict(
        vocab_size=61, hidden_size=21, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17,
        projection_dim=9, layer_norm_eps=1e-3, max_position_embeddings=23, eos_token_id=60,
    ),
    "end among the others": dict(
        vocab_size=33, hidden_size=40, num_hidden_layers=1, num_attention_heads=5, intermediate_size=96,
        projection_dim=50, hidden_act="gelu", layer_norm_eps=1e-6, max_position_embeddings=19, eos_token_id=7,
    ),
    "old end": dict(
        vocab_size=97, hidden_size=28, num_hidden_layers=2, num_attention_heads=7, intermediate_size=50,
        projection_dim=28, hidden_act="relu", max_position_embeddings=31, eos_token_id=2,
    ),
}  # fmt: skip


def config_of(**values) -> CLIPTextConfig:
    return CLIPTextConfig(**values, bos_token_id=1, pad_token_id=0)


def test_the_text_half_of_a_whole_checkpoint(tmp_path):
    vision = dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, image_size=8,
                  patch_size=4)  # fmt: skip
    text = config_of(**CONFIGS["odd heads"]).to_dict()
    reference = build(
        CLIPModel, CLIPConfig(text_config=text, vision_config=vision, projection_dim=11), seed=1
    )
    reference.save_pretrained(tmp_path)
    spec = import_spec(tmp_path)
    ids = torch.tensor([[3, 4, 5, 60], [6, 60, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    with torch.no_grad():
        theirs = reference.get_text_features(ids, attention_mask=mask).pooler_output
        assert_close(load(spec, tmp_path)(ids, mask).text_embeds, theirs)
    assert write_config(spec)["architectures"] == ["CLIPTextModelWithProjection"]
    with pytest.raises(NoFamilyError, match="no field for\n  an image encoder"):
        write_config(spec, "clip")


class TestClip(EncoderTests):
    model_class = CLIPTextModelWithProjection
    config = staticmethod(config_of)
    configs = CONFIGS
    check = staticmethod(check)
    others = [(CLIPTextModel, values) for values in CONFIGS.values()]
    refusals = (
        ("hidden_act", "quick_gleu", "Did you mean 'quick_gelu'"),
        ("architectures", ["CLIPVisionModel"], "Choose from: CLIPTextModel, CLIPTextModelWithProjection"),
        ("eos_token_id", 61, "must be below vocab_size, which is 61"),
        ("attention_type", "flash", "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        heads, vocab_size = data.draw(st.integers(1, 7), "heads"), data.draw(st.integers(5, 90), "vocab_size")
        return dict(
            vocab_size=vocab_size,
            hidden_size=heads * data.draw(st.integers(3, 9), "head_dim"),
            num_hidden_layers=data.draw(st.integers(1, 4), "layers"),
            num_attention_heads=heads,
            intermediate_size=data.draw(st.integers(1, 70), "hidden"),
            hidden_act=data.draw(ACTIVATIONS | st.just("quick_gelu"), "activation"),
            layer_norm_eps=data.draw(EPS, "eps"),
            max_position_embeddings=data.draw(st.integers(1, 40), "context_length"),
            projection_dim=data.draw(st.integers(1, 30), "projection"),
            eos_token_id=data.draw(st.integers(2, vocab_size - 1), "end"),
        )
