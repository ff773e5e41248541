"""Gemma 3 with images against transformers."""

from __future__ import annotations

from typing import Any

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import FEW_LAYERS, FLAG, lists
from tests.parity.families.vision_language_tests import HEADS, VisionLanguageTests

SIGLIP: dict[str, Any] = dict(
    model_type="siglip_vision_model", hidden_size=20, num_hidden_layers=2, num_attention_heads=5, intermediate_size=40,
    image_size=16, patch_size=4, layer_norm_eps=1e-3, vision_use_head=False,
)  # fmt: skip
TEXT: dict[str, Any] = dict(
    model_type="gemma3_text", vocab_size=61, hidden_size=24, num_hidden_layers=3, num_attention_heads=4,
    num_key_value_heads=2, head_dim=8, intermediate_size=33, max_position_embeddings=64, sliding_window=5,
    layer_types=["sliding_attention", "full_attention", "sliding_attention"], query_pre_attn_scalar=11, rms_norm_eps=1e-3,
)  # fmt: skip
UNREAD = ("model.vision_tower.head.",)

PUBLISHED = {
    "architectures": ["Gemma3ForConditionalGeneration"], "boi_token_index": 255999, "eoi_token_index": 256000,
    "eos_token_id": [1, 106], "image_token_index": 262144, "initializer_range": 0.02, "mm_tokens_per_image": 256,
    "model_type": "gemma3",
    "text_config": {
        "hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
        "sliding_window": 1024,
    },
    "torch_dtype": "bfloat16", "transformers_version": "4.50.0.dev0",
    "vision_config": {
        "hidden_size": 1152,
        "image_size": 896,
        "intermediate_size": 4304,
        "model_type": "siglip_vision_model",
        "num_attention_heads": 16,
        "num_hidden_layers": 27,
        "patch_size": 14,
        "vision_use_head": False,
    },
}  # fmt: skip
"""The fields of gemma-3-4b-it's config."""


class TestGemma3(VisionLanguageTests):
    model_class = hf.Gemma3ForConditionalGeneration
    configs = {
        "gemma 3": dict(vision_config=SIGLIP, text_config=TEXT, image_token_index=7, mm_tokens_per_image=4),
        "patches as they are, untied": dict(
            vision_config={**SIGLIP, "image_size": 9, "num_channels": 1, "vision_use_head": True},
            text_config={**TEXT, "num_key_value_heads": 4, "sliding_window": 3},
            image_token_index=60, mm_tokens_per_image=4, tie_word_embeddings=False,
        ),
    }  # fmt: skip
    options = {"without": UNREAD, "marked": True}
    refusals = (
        ("mm_tokens_per_image", 5, "must be the square of a divisor of the patches in a row, which are 4"),
        ("mm_tokens_per_image", 9, "must be the square of a divisor of the patches in a row, which are 4"),
        ("vision_config.model_type", "vit", "is not a supported family here"),
        ("text_config.model_type", "gemma2", "is not a supported family here"),
        ("text_config.use_bidirectional_attention", True, "must be false"),
        ("text_config.final_logit_softcapping", 3.0, "must be null"),
        ({"image_token_index": 61}, "image_token_index: must be below text_config.vocab_size, which is 61"),
    )
    published = {"gemma3-4b": PUBLISHED}
    preset = "gemma3-4b"
    no_field = (
        ("connector={kind: mlp, token: 1}", "connector.kind mlp"),
        ("connector.norm=null", "connector without an rms_norm of the same eps as the norms of the images"),
        ("connector.shuffle=2", "connector"),
        ("decoder.bidirectional=null", "decoder"),
        ("image.final_norm=false", "image"),
        ("head.softcap=3.0", "head.softcap"),
    )

    @staticmethod
    def draw(data):
        squares, pool = data.draw(st.integers(1, 3), "squares"), data.draw(st.integers(1, 3), "pool")
        patch, depth = data.draw(st.integers(1, 4), "patch"), data.draw(FEW_LAYERS, "layers")
        return dict(
            vision_config={
                **SIGLIP, "num_hidden_layers": FEW_LAYERS, "patch_size": patch,
                "image_size": squares * pool * patch + data.draw(st.integers(0, patch - 1), "rest"),
                "hidden_act": st.sampled_from(["gelu", "gelu_pytorch_tanh"]),
            },
            text_config={
                **TEXT, "num_attention_heads": HEADS, "num_hidden_layers": depth, "sliding_window": st.integers(1, 12),
                "layer_types": lists(["sliding_attention", "full_attention"], depth),
            },
            image_token_index=st.integers(0, 60), mm_tokens_per_image=squares**2, tie_word_embeddings=FLAG,
        )  # fmt: skip
