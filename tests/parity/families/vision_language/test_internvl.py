"""InternVL against transformers."""

from __future__ import annotations

from typing import Any

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import FLAG
from tests.parity.families.vision_language_tests import HEADS, VisionLanguageTests, draw_text

VISION: dict[str, Any] = dict(
    hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=17, image_size=16, patch_size=4,
    layer_norm_eps=1e-3, attention_bias=True, layer_scale_init_value=0.7,
)  # fmt: skip
QWEN2: dict[str, Any] = dict(
    model_type="qwen2", vocab_size=61, hidden_size=24, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, intermediate_size=33, max_position_embeddings=64,
)  # fmt: skip


class TestInternVL(VisionLanguageTests):
    model_class = hf.InternVLForConditionalGeneration
    configs = {
        "internvl 3": dict(
            vision_config=VISION, text_config=QWEN2, image_token_id=60, image_seq_length=4, tie_word_embeddings=False
        ),
        "the 6 billion of images, one layer less": dict(
            vision_config={**VISION, "norm_type": "rms_norm", "use_qk_norm": True, "attention_bias": False,
                           "num_hidden_layers": 3, "use_mean_pooling": False},
            text_config={**QWEN2, "model_type": "llama", "num_key_value_heads": 4},
            image_token_id=7, vision_feature_layer=-2, projector_hidden_act="gelu_pytorch_tanh",
        ),
        "a last norm, and patches as they are": dict(
            vision_config={**VISION, "use_mean_pooling": False, "image_size": 9, "patch_size": [3, 3], "num_channels": 1},
            text_config={**QWEN2, "model_type": "qwen3", "head_dim": 8},
            image_token_id=0, downsample_ratio=1.0,
        ),
    }  # fmt: skip
    options = {"without": ("model.vision_tower.layernorm.",)}
    refusals = (
        ("vision_feature_layer", [-1, -2], "must be a whole number"),
        ("vision_feature_layer", 1, "must be from -2 to -1: layers are counted from the last"),
        ("vision_feature_select_strategy", "full", 'must be "default": the class token is in'),
        ("downsample_ratio", 1 / 3, "must be one of 1.0, 0.5, 0.25, 0.125, 0.0625: the reference rounds others"),
        (
            {"downsample_ratio": 0.125},
            "downsample_ratio: connector.shuffle must divide the number of patches in a row, which is 4",
        ),
        ("vision_config.use_absolute_position_embeddings", False, "must be true"),
        ("vision_config.projection_dropout", 0.1, "must equal hidden_dropout_prob, which is 0.0"),
        (
            {"vision_config.norm_type": "rms_norm", "vision_config.use_mean_pooling": False},
            "vision_config.use_mean_pooling: must be true with norm_type rms_norm",
        ),
        ("vision_config.norm_type", "batch_norm", "is not supported"),
        ("vision_config.image_size", [16, 12], "must be a whole number"),
        ("vision_config.depth", 4, "unsupported fields:\n  vision_config.depth: 4"),
        ("text_config.model_type", "gpt2", "is not a supported family here"),
        ({"image_token_id": 61}, "image_token_id: must be below text_config.vocab_size, which is 61"),
    )  # fmt: skip
    preset = "internvl3-1b"
    no_field = (
        ("connector={kind: linear, token: 1}", "connector of other layers than two as wide as the decoder"),
        ("connector.hidden=64", "connector of other layers than two as wide as the decoder"),
        ("connector.joined_norm=null", "connector without a layer_norm of joined vectors"),
        (["image.embedding.image_size=420", "connector.shuffle=3"], "or of squares with other sides"),
        ("connector.norm={kind: layer_norm}", "connector"),
        ("image.block.layer_scale=null", "image"),
    )

    @staticmethod
    def draw(data):
        heads, shuffle = data.draw(HEADS, "heads"), data.draw(st.sampled_from([1, 2, 4]), "shuffle")
        side, patch = shuffle * data.draw(st.integers(1, 2), "squares"), data.draw(st.integers(1, 5), "patch")
        norm = data.draw(st.sampled_from(["layer_norm", "rms_norm"]), "norm")
        return dict(
            vision_config={
                **VISION, "num_hidden_layers": st.integers(2, 3), "image_size": side * patch + data.draw(st.integers(0, patch - 1), "rest"),
                "patch_size": patch, "norm_type": norm, "attention_bias": FLAG, "use_qk_norm": FLAG,
                "use_mean_pooling": norm == "rms_norm" or FLAG,
            },
            text_config={**QWEN2, **draw_text(data, heads), "model_type": st.sampled_from(["llama", "qwen2", "qwen3"])},
            image_token_id=st.integers(0, 60), downsample_ratio=1 / shuffle, tie_word_embeddings=FLAG,
            vision_feature_layer=st.sampled_from([-1, -2]),
        )  # fmt: skip
