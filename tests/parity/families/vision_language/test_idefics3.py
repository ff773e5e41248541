"""Idefics 3 and SmolVLM against transformers."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
import torch
import transformers as hf
from hypothesis import strategies as st
from transformers.models.idefics3.modeling_idefics3 import Idefics3VisionEmbeddings

from tests.parity.families.draws import FEW_LAYERS, FLAG
from tests.parity.families.vision_language_tests import HEADS, VisionLanguageTests, draw_text
from zoo.families.vision_language.idefics3 import _ROUNDED

VISION: dict[str, Any] = dict(
    hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=17, image_size=16, patch_size=4,
    layer_norm_eps=1e-3,
)  # fmt: skip
LLAMA: dict[str, Any] = dict(
    model_type="llama", vocab_size=61, hidden_size=24, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, intermediate_size=33, max_position_embeddings=64, pad_token_id=2,
)  # fmt: skip
CONFIGS = {
    "smolvlm": dict(
        vision_config={**VISION, "image_size": 13, "num_channels": 1, "hidden_act": "gelu"},
        text_config={**LLAMA, "num_key_value_heads": 4, "head_dim": 10},
        tie_word_embeddings=True, image_token_id=60, scale_factor=3,
    ),
    "idefics3": dict(vision_config=VISION, text_config=LLAMA, image_token_id=7),
}  # fmt: skip

PUBLISHED = {
    "architectures": ["Idefics3ForConditionalGeneration"], "image_token_id": 49190, "model_type": "idefics3",
    "scale_factor": 4,
    "text_config": {
        "_flash_attn_2_enabled": True, "_name_or_path": "None", "architectures": ["VLlama3ForCausalLM"],
        "head_dim": 64, "hidden_size": 576, "intermediate_size": 1536, "is_llama_config": True,
        "max_position_embeddings": 8192, "model_type": "llama", "neftune_noise_alpha": 0.0,
        "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3, "pad_token_id": 2,
        "perceiver_config": {"model_type": "vllama3", "resampler_depth": 6},
        "pixel_shuffle_factor": 4, "qk_layer_norms": False, "rms_norm_eps": 1e-05, "rope_interleaved": False,
        "rope_theta": 100000, "torch_dtype": "bfloat16",
        "transformers.js_config": {"kv_cache_dtype": {"fp16": "float16"}},
        "use_resampler": False, "vocab_size": 49280,
    },
    "tie_word_embeddings": False, "torch_dtype": "bfloat16", "transformers_version": "4.46.0", "use_cache": True,
    "use_reentrant_checkpointing": False,
    "vision_config": {
        "hidden_size": 768, "image_size": 512, "max_image_size": {"longest_edge": 512}, "model_type": "idefics3",
        "num_attention_heads": 12, "patch_size": 16, "size": {"longest_edge": 2048}, "tie_word_embeddings": False,
        "use_base_siglip": False,
    },
    "vocab_size": 49280,
}  # fmt: skip
"""The fields of SmolVLM-256M-Instruct's config, with fields of training that the reference does not have."""


class TestIdefics3(VisionLanguageTests):
    model_class = hf.Idefics3ForConditionalGeneration
    configs = {"idefics3": CONFIGS["idefics3"]}
    options = {"by_row": True}
    strict = False
    refusals: ClassVar[Any] = (
        ("vision_config.image_size", [16, 12], "must be a whole number"),
        ("vision_config.image_size", 100, "makes 25 patches in a row, some of"),
        ("vision_config.image_size", 400, "makes 100 patches in a row, some of"),
        ("vision_config.attention_chunk_size", 4, "unsupported fields:\n  vision_config.attention_chunk_size: 4"),
        ("text_config.model_type", "gpt2", "is not a supported family here"),
        ("text_config.hidden_act", "sillu", "is not supported"),
        ({"scale_factor": 3}, "scale_factor: must divide the number of patches in a row, which is 4"),
        ({"image_token_id": 61}, "image_token_id: must be below text_config.vocab_size, which is 61"),
    )  # fmt: skip

    @staticmethod
    def draw(data):
        heads, factor = data.draw(HEADS, "heads"), data.draw(st.integers(1, 4), "factor")
        side, patch = factor * data.draw(st.integers(1, 3), "squares"), data.draw(st.integers(1, 5), "patch")
        return dict(
            vision_config={
                **VISION, "num_hidden_layers": FEW_LAYERS, "patch_size": patch,
                "image_size": side * patch + data.draw(st.integers(0, patch - 1), "rest"),
                "hidden_act": st.sampled_from(["gelu", "gelu_pytorch_tanh", "quick_gelu"]),
            },
            text_config={**LLAMA, **draw_text(data, heads)}, image_token_id=st.integers(0, 60), scale_factor=factor,
            tie_word_embeddings=FLAG,
        )  # fmt: skip


class TestSmolVLM(TestIdefics3):
    model_class = hf.SmolVLMForConditionalGeneration
    configs = {"smolvlm": CONFIGS["smolvlm"]}
    refusals = ()
    published = {"smolvlm-256m": PUBLISHED}
    preset = "smolvlm-256m"
    no_field = (
        ("connector={kind: mlp, token: 1}", "connector.kind mlp"),
        ("connector.bias=true", "connector"),
        ("connector.norm={kind: rms_norm}", "connector"),
        (
            ["image.embedding.image_size=400", "connector.shuffle=5"],
            "images whose patch_size makes 25 patches in a row",
        ),
    )


def _reference_positions(side: int) -> list[int]:
    """The positions of the patches of a whole image in the reference."""
    config = hf.SmolVLMConfig(
        vision_config=dict(hidden_size=1, image_size=side, patch_size=1, num_channels=1)
    ).vision_config
    embeddings = Idefics3VisionEmbeddings(config).requires_grad_(False)
    embeddings.position_embedding.weight.copy_(torch.arange(side**2)[:, None])
    embeddings.patch_embedding.weight.zero_()
    embeddings.patch_embedding.bias.zero_()
    found = embeddings(torch.zeros(1, 1, side, side), torch.ones(1, side, side, dtype=torch.bool))
    return found.flatten().long().tolist()


@pytest.mark.parametrize("side", [16, 24, 26, 27, 32])
def test_the_reference_has_a_position_for_every_patch(side):
    assert _reference_positions(side) == list(range(side**2))


@pytest.mark.parametrize("side", [19, 25])
def test_or_rounds_some_onto_one_another(side):
    assert side in _ROUNDED
    assert _reference_positions(side) != list(range(side**2))
