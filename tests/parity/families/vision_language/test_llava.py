"""LLaVA against transformers."""

from __future__ import annotations

from typing import Any

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import FLAG
from tests.parity.families.vision_language_tests import HEADS, VisionLanguageTests, draw_text

CLIP: dict[str, Any] = dict(
    model_type="clip_vision_model", hidden_size=24, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17,
    image_size=14, patch_size=4, layer_norm_eps=1e-3, projection_dim=9,
)  # fmt: skip
SIGLIP: dict[str, Any] = dict(
    model_type="siglip_vision_model", hidden_size=20, num_hidden_layers=2, num_attention_heads=5, intermediate_size=40,
    image_size=16, patch_size=8, num_channels=1,
)  # fmt: skip
LLAMA: dict[str, Any] = dict(
    model_type="llama", vocab_size=61, hidden_size=24, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, intermediate_size=33, max_position_embeddings=64,
)  # fmt: skip


class TestLlava(VisionLanguageTests):
    model_class = hf.LlavaForConditionalGeneration
    configs = {
        "llava 1.5": dict(vision_config=CLIP, text_config=LLAMA, image_token_index=7),
        "whole images, last layer": dict(
            vision_config={**CLIP, "hidden_act": "gelu"},
            text_config={**LLAMA, "model_type": "mistral", "sliding_window": 6},
            image_token_index=0, vision_feature_layer=-1, vision_feature_select_strategy="full",
            projector_hidden_act="gelu_pytorch_tanh",
        ),
        "interleave": dict(
            vision_config=SIGLIP,
            text_config={**LLAMA, "model_type": "qwen2", "tie_word_embeddings": True},
            tie_word_embeddings=True, image_token_index=60, vision_feature_select_strategy="full",
            multimodal_projector_bias=False,
        ),
    }  # fmt: skip
    options = {"without": ("model.vision_tower.post_layernorm.", "model.vision_tower.head.")}
    refusals = (
        ("vision_feature_layer", [-2, -5], "must be a whole number"),
        ("vision_feature_layer", 2, "must be from -3 to -1: layers are counted from the last"),
        (
            {"vision_config": SIGLIP},
            "vision_feature_select_strategy: must be full, as the images have no class token",
        ),
        ("vision_config.model_type", "vit", "is not a supported family here"),
        ("text_config.model_type", "gpt2", "is not a supported family here"),
        ("text_config.hidden_act", "sillu", "is not supported"),
        ({"image_token_index": 61}, "image_token_index: must be below text_config.vocab_size, which is 61"),
    )
    preset = "llava-1.5-7b"
    no_field = (
        ("connector.shuffle=2", "connector with pixel shuffle or a norm"),
        ("connector.hidden=64", "connector of other layers than two as wide as the decoder"),
        ("image.final_norm=true", "image.final_norm"),
    )

    @staticmethod
    def draw(data):
        images, heads = data.draw(st.sampled_from([CLIP, SIGLIP]), "images"), data.draw(HEADS, "heads")
        kept = ["default", "full"] if images is CLIP else ["full"]
        return dict(
            vision_config={**images, "num_hidden_layers": st.integers(2, 3)},
            text_config={**LLAMA, **draw_text(data, heads), "model_type": st.sampled_from(["llama", "mistral", "qwen2"])},
            image_token_index=st.integers(0, 60), vision_feature_layer=st.sampled_from([-1, -2]),
            vision_feature_select_strategy=st.sampled_from(kept), multimodal_projector_bias=FLAG,
        )  # fmt: skip
