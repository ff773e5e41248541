"""Qwen3.5 with images against transformers: rows and columns in the attention of a hybrid decoder, whose states see images too."""

from __future__ import annotations

from typing import Any

import torch
import transformers as hf
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from specs.forms.canonical import canonical
from tests.parity.families import vision_language_tests as vision_language
from tests.parity.families.draws import FEW_LAYERS, LAYERS, lists
from tests.parity.families.hybrids.test_qwen3_next import FULL, LINEAR
from tests.parity.families.vision_language.test_qwen2_vl import TOKENS
from tests.parity.families.vision_language.test_qwen3_vl import VISION as DEEP_VISION
from tests.parity.families.vision_language.test_qwen3_vl import draw_vision
from tests.parity.families.vision_language_tests import VisionLanguageTests
from tests.parity.reference import build, difference, load
from zoo.configs.importing import import_spec, spec_of_config
from zoo.families.common.config import Config

ROPE = {
    "rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 0], "mrope_interleaved": True,
    "partial_rotary_factor": 0.5,
}  # fmt: skip
TEXT: dict[str, Any] = dict(
    vocab_size=61, hidden_size=24, intermediate_size=33, num_hidden_layers=4, num_attention_heads=3, head_dim=8,
    num_key_value_heads=1, max_position_embeddings=128, rms_norm_eps=0.5, rope_parameters=ROPE, bos_token_id=0,
    eos_token_id=1, linear_num_key_heads=2, linear_num_value_heads=6, linear_key_head_dim=5, linear_value_head_dim=7,
)  # fmt: skip
VISION = {name: value for name, value in DEEP_VISION.items() if name != "deepstack_visual_indexes"}
CONFIGS: dict[str, Any] = {
    "qwen3.5": dict(text_config=TEXT, vision_config=VISION, **TOKENS),
    "other sizes, tied": dict(
        text_config={
            **TEXT, "num_hidden_layers": 2, "layer_types": [FULL, LINEAR], "attention_bias": True,
            "num_attention_heads": 4, "num_key_value_heads": 2, "linear_conv_kernel_dim": 3, "head_dim": 12,
            "rope_parameters": {**ROPE, "mrope_section": [1, 3, 2], "partial_rotary_factor": 1.0},
        },
        vision_config={**VISION, "spatial_merge_size": 1, "num_position_embeddings": 4, "hidden_act": "silu"},
        tie_word_embeddings=True,
        **TOKENS,
    ),
    "attention alone": dict(
        text_config={
            **TEXT, "num_hidden_layers": 1, "layer_types": [FULL], "head_dim": 24,
            "rope_parameters": {
                **ROPE, "rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 64,
                "partial_rotary_factor": 0.25, "mrope_section": [1, 1, 1],
            },
        },
        vision_config={**VISION, "depth": 1, "patch_size": 3, "in_channels": 1, "temporal_patch_size": 1},
        **TOKENS,
    ),
}  # fmt: skip


def draw_text(data) -> dict[str, Any]:
    """A decoder with attention in at least one layer."""
    depth, key_heads = data.draw(LAYERS, "depth"), data.draw(st.integers(1, 3), "key heads")
    width = 8 * data.draw(st.integers(1, 3), "head_dim")
    row, column = (data.draw(st.integers(0, width // 12), f"pairs of {axis}") for axis in ("rows", "columns"))
    return {
        **TEXT, "num_hidden_layers": depth, "head_dim": width,
        "layer_types": lists([FULL, LINEAR], depth).filter(lambda kinds: FULL in kinds),
        "rope_parameters": {**ROPE, "mrope_section": [width // 4 - row - column, row, column]},
        "linear_num_key_heads": key_heads,
        "linear_num_value_heads": key_heads * data.draw(st.integers(1, 3), "value heads of a key head"),
        "linear_key_head_dim": st.integers(2, 9), "linear_value_head_dim": st.integers(2, 9),
        "linear_conv_kernel_dim": st.integers(2, 5),
    }  # fmt: skip


def draw_images() -> dict[str, Any]:
    """The fields of any encoder of images, without DeepStack."""
    fields = {**draw_vision(), "depth": FEW_LAYERS}
    del fields["deepstack_visual_indexes"]
    return fields


class TestQwen35(VisionLanguageTests):
    model_class = hf.Qwen3_5ForConditionalGeneration
    defaults = TOKENS
    configs = CONFIGS
    drawn = {}
    refusals = (
        ("vision_config.num_position_embeddings", 8, "must be a square number"),
        ("vision_config.deepstack_visual_indexes", [0], "must be []: the reference adds nothing"),
        ("vision_config.out_hidden_size", 12, "must be 24: images among tokens are as wide"),
        ("text_config.attn_output_gate", False, "must be true: the reference has no attention without a gate"),
        ("text_config.rope_parameters.mrope_section", [2, 1], "must be the numbers of pairs for frame, row and column"),
        ("text_config.mlp_only_layers", [1], "must be []: the reference has feed-forwards of one kind"),
        ("text_config.output_gate_type", "swish", "unsupported fields:\n  text_config.output_gate_type"),
    )  # fmt: skip

    @staticmethod
    def draw(data):
        return dict(text_config=draw_text(data), vision_config=draw_images())


def test_what_a_config_leaves_out_is_as_in_the_reference():
    config = hf.Qwen3_5Config().to_dict()
    bare = {
        "architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5",
        "vision_config": {"out_hidden_size": 4096}, "text_config": {"model_type": "qwen3_5_text"},
    }  # fmt: skip
    config["vision_config"]["out_hidden_size"] = 4096
    found, expected = (
        canonical(spec_of_config(Config(data, "config.json"), name="usual"))
        for data in (bare, {**config, "architectures": bare["architectures"]})
    )
    assert found == expected


def test_tensors_that_predict_further_tokens_are_passed_over(tmp_path):
    reference = build(hf.Qwen3_5ForConditionalGeneration, TestQwen35.configured("attention alone"), 1)
    reference.save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    save_file({**load_file(file), "mtp.norm.weight": torch.ones(24)}, file, {"format": "pt"})
    spec = import_spec(tmp_path)
    inputs = vision_language.drawn_inputs(spec, 1)
    expected = vision_language.scores(reference, vision_language.typed(spec, inputs))
    assert difference(vision_language.scores(load(spec, tmp_path), inputs), expected) <= 1e-5
