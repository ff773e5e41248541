"""PaliGemma and PaliGemma 2 against transformers."""

from __future__ import annotations

from typing import Any

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import FEW_LAYERS, FLAG
from tests.parity.families.vision_language.test_gemma3_images import SIGLIP, UNREAD
from tests.parity.families.vision_language_tests import HEADS, VisionLanguageTests

TEXT: dict[str, Any] = dict(
    model_type="gemma", vocab_size=61, hidden_size=24, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=1, head_dim=8, intermediate_size=33, max_position_embeddings=64, rms_norm_eps=1e-3,
)  # fmt: skip
SECOND: dict[str, Any] = dict(
    TEXT, model_type="gemma2", num_key_value_heads=2, num_hidden_layers=3, sliding_window=4, query_pre_attn_scalar=11,
    layer_types=["sliding_attention", "full_attention", "sliding_attention"],
)  # fmt: skip
PUBLISHED = {
    "_name_or_path": "final-weights-pali/", "architectures": ["PaliGemmaForConditionalGeneration"],
    "bos_token_id": 2, "eos_token_id": 1, "hidden_size": 2048, "ignore_index": -100, "image_token_index": 257152,
    "model_type": "paligemma", "pad_token_id": 0, "projection_dim": 2048,
    "text_config": {
        "hidden_size": 2048,
        "intermediate_size": 16384,
        "model_type": "gemma",
        "num_attention_heads": 8,
        "num_hidden_layers": 18,
        "num_image_tokens": 256,
        "num_key_value_heads": 1,
        "torch_dtype": "float32",
        "vocab_size": 257216,
    },
    "torch_dtype": "float32", "transformers_version": "4.41.0.dev0",
    "vision_config": {
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "model_type": "siglip_vision_model",
        "num_attention_heads": 16,
        "num_hidden_layers": 27,
        "num_image_tokens": 256,
        "patch_size": 14,
        "projection_dim": 2048,
        "projector_hidden_act": "gelu_fast",
        "vision_use_head": False,
    },
}  # fmt: skip
"""The fields of paligemma-3b-pt-224's config."""


class TestPaliGemma(VisionLanguageTests):
    model_class = hf.PaliGemmaForConditionalGeneration
    configs = {
        "paligemma 2": dict(vision_config=SIGLIP, text_config=SECOND, image_token_index=7, projection_dim=24),
        "paligemma": dict(
            vision_config={**SIGLIP, "image_size": 9, "num_channels": 1, "vision_use_head": True},
            text_config=TEXT, image_token_index=60, projection_dim=24, tie_word_embeddings=False,
        ),
    }  # fmt: skip
    options = {"without": UNREAD, "marked": True}
    of_refusals = "paligemma"
    refusals = (
        ("projection_dim", 20, "must be 24: images among tokens are as wide as these"),
        ("text_config.model_type", "gemma3_text", "is not a supported family here"),
        ("vision_config.depth", 4, "unsupported fields:\n  vision_config.depth: 4"),
        ({"image_token_index": 61}, "image_token_index: must be below text_config.vocab_size, which is 61"),
    )
    published = {"paligemma-3b-224": PUBLISHED}
    preset = "paligemma-3b-224"
    no_field = (
        ("connector={kind: mlp, token: 1}", "connector.kind mlp"),
        ("connector.pool=2", "connector"),
        ("connector.bias=false", "connector"),
        ("decoder.bidirectional=image", "decoder"),
        ("image.final_norm=false", "image"),
    )

    @staticmethod
    def draw(data):
        side, patch = data.draw(st.integers(1, 3), "side"), data.draw(st.integers(1, 4), "patch")
        text = data.draw(st.sampled_from([TEXT, SECOND]), "text")
        window = {"sliding_window": st.integers(1, 12)} if text is SECOND else {}
        return dict(
            vision_config={
                **SIGLIP, "num_hidden_layers": FEW_LAYERS, "patch_size": patch,
                "image_size": side * patch + data.draw(st.integers(0, patch - 1), "rest"),
            },
            text_config={**text, "num_attention_heads": HEADS, **window}, image_token_index=st.integers(0, 60),
            projection_dim=24, tie_word_embeddings=FLAG,
        )  # fmt: skip
