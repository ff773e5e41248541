"""Qwen3-VL-MoE against transformers: the mixtures of Qwen3-MoE among images, and matrices of experts in two layouts."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers as hf
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from tests.parity.families import vision_language_tests as vision_language
from tests.parity.families.draws import FEW_LAYERS, FLAG
from tests.parity.families.mixtures import draw_experts
from tests.parity.families.vision_language.test_qwen2_vl import TOKENS
from tests.parity.families.vision_language.test_qwen3_vl import ROPE, VISION
from tests.parity.families.vision_language.test_qwen3_vl import TEXT as DENSE
from tests.parity.families.vision_language_tests import VisionLanguageTests
from tests.parity.reference import build, difference, load
from zoo.configs.importing import import_spec
from zoo.weights.source import WeightError

TEXT: dict[str, Any] = {
    **DENSE, "moe_intermediate_size": 9, "num_experts": 5, "num_experts_per_tok": 2, "decoder_sparse_step": 1,
    "mlp_only_layers": [], "tie_word_embeddings": False,
}  # fmt: skip

PUBLISHED = {
    "architectures": ["Qwen3VLMoeForConditionalGeneration"], "image_token_id": 151655, "model_type": "qwen3_vl_moe",
    "text_config": {
        "attention_bias": False, "decoder_sparse_step": 1, "head_dim": 128, "hidden_act": "silu", "hidden_size": 2048,
        "intermediate_size": 6144, "max_position_embeddings": 262144, "mlp_only_layers": [],
        "model_type": "qwen3_vl_moe_text", "moe_intermediate_size": 768, "norm_topk_prob": True,
        "num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 48,
        "num_key_value_heads": 4, "rms_norm_eps": 1e-06,
        "rope_scaling": {"mrope_interleaved": True, "mrope_section": [24, 20, 20], "rope_type": "default"},
        "rope_theta": 5000000, "vocab_size": 151936,
    },
    "tie_word_embeddings": False, "video_token_id": 151656,
    "vision_config": {
        "deepstack_visual_indexes": [8, 16, 24], "depth": 27, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 1152,
        "in_channels": 3, "intermediate_size": 4304, "model_type": "qwen3_vl_moe", "num_heads": 16,
        "num_position_embeddings": 2304, "out_hidden_size": 2048, "patch_size": 16, "spatial_merge_size": 2,
        "temporal_patch_size": 2,
    },
    "vision_end_token_id": 151653, "vision_start_token_id": 151652,
}  # fmt: skip
"""The fields of Qwen3-VL-30B-A3B-Instruct's config that say what the model is."""


class TestQwen3VLMoe(VisionLanguageTests):
    model_class = hf.Qwen3VLMoeForConditionalGeneration
    defaults = TOKENS
    configs = {
        "qwen3-vl-moe": dict(text_config=TEXT, vision_config=VISION, **TOKENS),
        "dense layers, biases": dict(
            text_config={
                **TEXT, "head_dim": 12, "attention_bias": True, "rope_parameters": {**ROPE, "mrope_section": [1, 2, 3]},
                "mlp_only_layers": [1], "num_experts": 3, "num_experts_per_tok": 3,
            },
            vision_config={**VISION, "spatial_merge_size": 1, "deepstack_visual_indexes": [1, 2, 3], "hidden_act": "silu"},
            **TOKENS,
        ),
        "every second layer, no deep layers": dict(
            text_config={**TEXT, "decoder_sparse_step": 2, "moe_intermediate_size": 12},
            vision_config={**VISION, "depth": 2, "deepstack_visual_indexes": []},
            **TOKENS,
        ),
    }  # fmt: skip
    drawn = {}
    refusals = (
        ("text_config.norm_topk_prob", False, "must be true: the reference divides the weights of experts"),
        ("text_config.decoder_sparse_step", 0, "must be at least 1"),
        ("text_config.sliding_window", 4, "unsupported fields"),
    )
    published = {"qwen3-vl-30b-a3b": PUBLISHED}

    @staticmethod
    def draw(data):
        depth, mixture = data.draw(FEW_LAYERS, "depth"), draw_experts(data)
        del mixture["norm_topk_prob"]
        text = {
            **TEXT, **mixture, "num_hidden_layers": depth, "moe_intermediate_size": st.integers(1, 30),
            "mlp_only_layers": [layer for layer in range(depth - 1) if data.draw(FLAG, "dense")],
        }  # fmt: skip
        layers = [layer for layer in range(2) if data.draw(FLAG, "deep")][:depth]
        return dict(
            text_config=text, vision_config={**VISION, "depth": 2, "deepstack_visual_indexes": layers}
        )


@pytest.mark.parametrize(
    "hidden", [9, 12, 24], ids=["neither square", "gate and up are square", "down is square"]
)
def test_experts_as_published(hidden, tmp_path):
    """Transposed, as releases before 5 write them: the shapes of a layer's two tensors tell, though one may be square."""
    text = {**TEXT, "moe_intermediate_size": hidden, "mlp_only_layers": [1]}
    config = TestQwen3VLMoe.config(text_config=text, vision_config=VISION)
    reference = build(hf.Qwen3VLMoeForConditionalGeneration, config, 1)
    reference.save_pretrained(tmp_path)
    spec, file = import_spec(tmp_path), tmp_path / "model.safetensors"
    stored = load_file(file)
    turned = {
        name: values.mT.contiguous() if ".experts." in name else values for name, values in stored.items()
    }
    assert stored["model.language_model.layers.0.mlp.experts.down_proj"].shape == (5, 24, hidden)
    save_file(turned, file, {"format": "pt"})
    inputs = vision_language.drawn_inputs(spec, 1)
    expected = vision_language.scores(reference, vision_language.typed(spec, inputs))
    assert difference(vision_language.scores(load(spec, tmp_path), inputs), expected) <= 1e-5


def test_experts_of_another_width_are_named_once(tmp_path):
    vision = {**VISION, "deepstack_visual_indexes": [0]}
    config = TestQwen3VLMoe.config(text_config={**TEXT, "num_hidden_layers": 1}, vision_config=vision)
    build(hf.Qwen3VLMoeForConditionalGeneration, config, 1).save_pretrained(tmp_path)
    spec = import_spec(tmp_path)
    file, down = tmp_path / "model.safetensors", "model.language_model.layers.0.mlp.experts.down_proj"
    save_file({**load_file(file), down: torch.zeros(5, 24, 8)}, file, {"format": "pt"})
    with pytest.raises(WeightError) as caught:
        load(spec, tmp_path)
    assert f"of another shape: {down} is 5 x 24 x 8, and " in str(caught.value)
    assert "experts.down.weight needs 5 x 24 x 9" in str(caught.value)
    assert str(caught.value).count("of another shape") == 2  # in the headline too
