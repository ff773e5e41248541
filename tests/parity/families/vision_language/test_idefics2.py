"""Idefics 2 against transformers."""

from __future__ import annotations

from typing import Any

import pytest
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import FEW_LAYERS, FLAG
from tests.parity.families.vision_language_tests import HEADS, VisionLanguageTests, draw_text
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config

VISION: dict[str, Any] = dict(
    hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=17, image_size=12, patch_size=4,
    layer_norm_eps=1e-3,
)  # fmt: skip
RESAMPLER: dict[str, Any] = dict(
    hidden_size=20, rms_norm_eps=1e-4, resampler_n_latents=5, resampler_depth=2, resampler_n_heads=6,
    resampler_head_dim=4, num_key_value_heads=3,
)  # fmt: skip
LLAMA: dict[str, Any] = dict(
    model_type="llama", vocab_size=61, hidden_size=20, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, head_dim=8, intermediate_size=33, max_position_embeddings=64, rms_norm_eps=1e-3,
)  # fmt: skip
MISTRAL: dict[str, Any] = {**LLAMA, "model_type": "mistral", "sliding_window": 6}


class TestIdefics2(VisionLanguageTests):
    model_class = hf.Idefics2ForConditionalGeneration
    configs = {
        "idefics2": dict(vision_config=VISION, perceiver_config=RESAMPLER, text_config=MISTRAL, image_token_id=60),
        "as many keys, gelu": dict(
            vision_config={**VISION, "image_size": 11, "num_channels": 1},
            perceiver_config={**RESAMPLER, "num_key_value_heads": 6, "hidden_act": "gelu", "resampler_depth": 1},
            text_config={**LLAMA, "hidden_act": "gelu_pytorch_tanh"},
            image_token_id=7, tie_word_embeddings=True,
        ),
        "norms of the decoder": dict(
            vision_config=VISION,
            perceiver_config={k: v for k, v in RESAMPLER.items() if k not in ("hidden_size", "rms_norm_eps")},
            text_config=MISTRAL, image_token_id=0,
        ),
    }  # fmt: skip
    options = {"by_row": True}
    refusals = (
        ("vision_config.image_size", 100, "makes 25 patches in a row, some of"),
        ("vision_config.attention_chunk_size", 4, "unsupported fields:\n  vision_config.attention_chunk_size: 4"),
        ("perceiver_config.attention_chunk_size", 4, "unsupported fields:\n  perceiver_config.attention_chunk_size: 4"),
        ("perceiver_config.hidden_act", "sillu", "is not supported"),
        (
            {"perceiver_config.num_key_value_heads": 4},
            "perceiver_config.num_key_value_heads: must divide perceiver_config.resampler_n_heads",
        ),
        ("text_config.model_type", "gpt2", "is not a supported family here"),
        ({"image_token_id": 61}, "image_token_id: must be below text_config.vocab_size, which is 61"),
    )  # fmt: skip
    preset = "idefics2-8b"
    no_field = (
        ("connector={kind: mlp, token: 1}", "connector.kind mlp"),
        ("image.embedding.image_size=350", "images whose patch_size makes 25 patches in a row"),
        ("connector.block.feed_forward.hidden=64", "connector"),
        ("connector.projection.hidden=64", "connector"),
        ("connector.block.attention.qk_norm={norm: {kind: rms_norm}}", "connector"),
    )

    @staticmethod
    def draw(data):
        heads, groups = data.draw(HEADS, "heads"), data.draw(st.integers(1, 3), "groups")
        kv_heads, patch = data.draw(st.integers(1, 3), "kv heads"), data.draw(st.integers(1, 5), "patch")
        text, rest = draw_text(data, heads), data.draw(st.integers(0, patch - 1), "rest")
        return dict(
            vision_config={
                **VISION, "num_hidden_layers": FEW_LAYERS, "patch_size": patch,
                "image_size": data.draw(st.integers(1, 5), "side") * patch + rest,
            },
            perceiver_config=dict(
                hidden_size=text["hidden_size"], rms_norm_eps=st.sampled_from([1e-6, 1e-3]),
                resampler_n_latents=st.integers(1, 6), resampler_depth=FEW_LAYERS, resampler_n_heads=groups * kv_heads,
                num_key_value_heads=kv_heads, resampler_head_dim=st.integers(1, 6),
                hidden_act=st.sampled_from(["silu", "gelu"]),
            ),
            text_config={**LLAMA, **text, "model_type": st.sampled_from(["llama", "mistral", "qwen2"])},
            image_token_id=st.integers(0, 60), tie_word_embeddings=FLAG,
        )  # fmt: skip


@pytest.mark.parametrize(("name", "eps"), [("idefics2", 1e-4), ("norms of the decoder", 1e-3)])
def test_norms_are_those_of_the_decoder_if_no_width_is_stated(name, eps):
    data = {
        "model_type": "idefics2",
        "architectures": ["Idefics2ForConditionalGeneration"],
        **TestIdefics2.configs[name],
    }
    assert spec_of_config(Config(data, "config.json"), name="tiny").connector.block.norm.eps == eps
