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


class TestChineseClip(PairTests):
    model_class = hf.ChineseCLIPModel
    defaults = {"projection_dim": 11}
    configs = {
        name: {"text_config": text, "vision_config": vision}
        for (name, text), vision in zip(TEXTS.items(), VISION.values(), strict=False)
    }
    refusals = (
        ("vision_config.hidden_act", "gellu", "is not supported"),
        ("text_config.num_register_tokens", 4, "unsupported fields"),
    )
