"""Chinese CLIP against transformers."""

from __future__ import annotations

import transformers as hf

from tests.parity.families.pairs import PairTests
from tests.parity.families.vision.test_clip import VISION

TEXTS = {
    "odd heads": dict(
        vocab_size=61, hidden_size=21, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17,
        layer_norm_eps=1e-3, max_position_embeddings=23,
    ),
    "one type": dict(
        vocab_size=33, hidden_size=40, num_hidden_layers=1, num_attention_heads=5, intermediate_size=96,
        hidden_act="relu", max_position_embeddings=19, type_vocab_size=1,
    ),
}  # fmt: skip

PUBLISHED = {
    "architectures": ["ChineseCLIPModel"], "initializer_factor": 1.0, "initializer_range": 0.02,
    "logit_scale_init_value": 2.6592, "model_type": "chinese_clip", "projection_dim": 768,
    "text_config": {
        "architectures": ["ChineseCLIPTextModel"], "bos_token_id": 0, "directionality": "bidi", "eos_token_id": 2,
        "model_type": "chinese_clip_text_model", "output_past": True, "pooler_fc_size": 768,
        "pooler_num_attention_heads": 12, "pooler_num_fc_layers": 3, "pooler_size_per_head": 128,
        "pooler_type": "first_token_transform", "vocab_size": 21128,
    },
    "vision_config": {
        "dropout": 0.0,
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "model_type": "chinese_clip_vision_model",
        "num_attention_heads": 16,
        "num_hidden_layers": 24,
        "patch_size": 14,
        "projection_dim": 768,
    },
}  # fmt: skip
"""The fields of chinese-clip-vit-large-patch14's config."""


class TestChineseClip(PairTests):
    model_class = hf.ChineseCLIPModel
    defaults = {"projection_dim": 11}
    configs = {
        name: {"text_config": text, "vision_config": vision}
        for (name, text), vision in zip(TEXTS.items(), VISION.values(), strict=False)
    }
    published = {"chinese-clip-vit-l14": PUBLISHED}
    refusals = (
        ("vision_config.hidden_act", "gellu", "is not supported"),
        ("text_config.num_register_tokens", 4, "unsupported fields"),
    )
