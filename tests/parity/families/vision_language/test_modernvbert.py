"""ModernVBERT against transformers."""

from __future__ import annotations

from typing import Any

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import FEW_LAYERS, FLAG
from tests.parity.families.encoders.test_modernbert import DEFAULT, FULL, LINEAR, LOCAL, TOKENS
from tests.parity.families.vision_language.test_gemma3_images import SIGLIP
from tests.parity.families.vision_language_tests import VisionLanguageTests

TEXT: dict[str, Any] = dict(
    model_type="modernbert", vocab_size=61, hidden_size=24, num_hidden_layers=3, num_attention_heads=4,
    intermediate_size=33, max_position_embeddings=64, local_attention=6, norm_eps=1e-3, **TOKENS,
)  # fmt: skip
CONFIGS = {
    "modernvbert": dict(
        vision_config=SIGLIP, text_config={**TEXT, "attention_bias": True}, image_token_id=7, pixel_shuffle_factor=2
    ),
    "other kinds of layers": dict(
        vision_config={**SIGLIP, "image_size": 9, "num_channels": 1, "vision_use_head": True},
        text_config={
            **TEXT, "local_attention": 11, "layer_types": [LOCAL, FULL, LOCAL], "norm_bias": True, "mlp_bias": True,
            "rope_parameters": {FULL: LINEAR, LOCAL: DEFAULT}, "hidden_activation": "silu",
        },
        image_token_id=60,
        pixel_shuffle_factor=1,
    ),
}  # fmt: skip
UNREAD = ("vision_model.head.",)


class TestModernVBert(VisionLanguageTests):
    model_class = hf.ModernVBertModel
    configs = CONFIGS
    options = {"without": UNREAD, "by_row": True}
    refusals = (
        ("text_config.model_type", "llama", "is not a supported family here"),
        ("vision_config.model_type", "vit", "is not a supported family here"),
        (
            {"pixel_shuffle_factor": 3},
            "pixel_shuffle_factor: must divide the number of patches in a row, which is 4",
        ),
        ({"image_token_id": 61}, "image_token_id: must be below text_config.vocab_size, which is 61"),
    )

    @staticmethod
    def draw(data):
        factor = data.draw(st.integers(1, 3), "factor")
        side, patch = factor * data.draw(st.integers(1, 2), "squares"), data.draw(st.integers(1, 4), "patch")
        layers = data.draw(st.integers(1, 4), "layers")
        kinds = st.lists(st.sampled_from([FULL, LOCAL]), min_size=layers, max_size=layers)
        return dict(
            vision_config={
                **SIGLIP, "num_hidden_layers": FEW_LAYERS, "patch_size": patch,
                "image_size": side * patch + data.draw(st.integers(0, patch - 1), "rest"),
            },
            text_config={
                **TEXT, "num_hidden_layers": layers, "layer_types": kinds, "local_attention": st.integers(2, 11),
                "attention_bias": FLAG, "mlp_bias": FLAG, "norm_bias": FLAG,
            },
            image_token_id=st.integers(0, 60), pixel_shuffle_factor=factor,
        )  # fmt: skip
