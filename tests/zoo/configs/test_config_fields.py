"""A config that breaks a rule is refused in its own fields, whatever the spec calls them."""

from __future__ import annotations

from typing import Any

import pytest

from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError, UnsupportedFieldsError

LLAMA = {"model_type": "llama", "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2}
DEEPSEEK = {"model_type": "deepseek_v3", "n_shared_experts": -1, "num_nextn_predict_layers": 0}
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "a field": ({**LLAMA, "initializer_range": -1.0}, "config.json: initializer_range: must be greater than 0\n  value: -1.0"),
    "a default": ({**LLAMA, "model_type": "bert", "num_attention_heads": None, "hidden_size": 31},
                  "config.json: num_attention_heads: must divide hidden_size, which is 31\n  value: 12\n  Use a divisor: 1, 31;"),
    "the other field of a rule": ({**LLAMA, "num_key_value_heads": 3},
                                  "config.json: num_key_value_heads: must divide num_attention_heads, which is 4\n  value: 3\n"),
    "a default of the other field": ({"model_type": "gpt_neo", "num_heads": 3},
                                     "config.json: num_heads: must divide hidden_size, which is 2048\n  value: 3\n"),
    "a default that has several names": ({"model_type": "xglm", "d_model": 3},
                                         "config.json: attention_heads: must divide d_model, which is 3\n  value: 16\n  Use a divisor"),
    "defaults": ({"model_type": "nomic_bert", "n_embd": 3},
                 "config.json: head_dim and num_attention_heads: encoder.block.attention.head_dim must be greater than 0\n  value: 0\n  Use 1 or more."),
    "an inner field": ({**LLAMA, "rope_parameters": {"rope_type": "default", "rope_theta": -1.0}},
                       "config.json: rope_parameters.rope_theta: must be greater than 0\n  value: -1.0"),
    "a default of a mapping": ({"model_type": "dbrx", "ffn_config": {"moe_top_k": 5}},
                               "config.json: ffn_config.moe_top_k: must not exceed ffn_config.moe_num_experts, which is 4\n  value: 5\n"),
    "defaults of an inner model": ({"model_type": "qwen2_5_vl", "vision_config": {"hidden_size": 100}},
                                   "config.json: vision_config.num_heads: must divide vision_config.hidden_size, which is 100\n  value: 16\n"),
    "several places": ({"model_type": "t5", "dropout_rate": 2.5}, "config.json: dropout_rate: must be less than 1\n  value: 2.5\n  Use a number below 1.0."),
    "several fields": (DEEPSEEK, "config.json: n_shared_experts and moe_intermediate_size: decoder.block.feed_forward.shared.hidden must be greater "
                       "than 0\n  value: -2048\n  It follows from n_shared_experts -1.\n  Use 1 or more."),
    "a divisor of 0": ({"model_type": "qwen2_5_vl", "vision_config": {"patch_size": 0}},
                       "config.json: vision_config.patch_size: is out of range: other sizes follow from it by division or by powers\n  value: 0\n  Correct"),
    "layers": ({**LLAMA, "num_hidden_layers": -1}, "config.json: num_hidden_layers: must be 1 or more\n  value: -1"),
    "the width of a head": ({"model_type": "ernie4_5", "head_dim": -1}, "config.json: head_dim: must be greater than 0\n  value: -1"),
    "a divisor of scores": ({"model_type": "gemma2", "query_pre_attn_scalar": 0}, "config.json: query_pre_attn_scalar: must be 1 or more"),
    "a number in quotes": ({**LLAMA, "num_hidden_layers": "2"}, "config.json: num_hidden_layers: must be a whole number\n  value: '2'\n  Write it without quotes: 2."),
    "a whole number with a point": ({**LLAMA, "num_hidden_layers": 2.0}, "must be a whole number\n  value: 2.0\n  Use 2."),
    "a fraction in quotes": ({**LLAMA, "num_hidden_layers": "2.5"}, "num_hidden_layers: must be a whole number\n  value: '2.5'\n  Correct the field, or delete it"),
    "digits without end": ({**LLAMA, "vocab_size": "1" * 5000}, "config.json: vocab_size: must be a whole number\n  value: '111"),
    "a boolean in quotes": ({**LLAMA, "attention_bias": "true"}, "must be true or false\n  value: 'true'\n  Write it without quotes: true."),
    "a number for a boolean": ({**LLAMA, "attention_bias": 1.0}, "must be true or false\n  value: 1.0\n  Correct the field, or delete it"),
    "a number for a mapping": ({**LLAMA, "rope_scaling": 2.0}, "rope_scaling: must be a mapping\n  value: 2.0\n  Correct the field, or delete it"),
    "a required field": ({**LLAMA, "rope_scaling": {"rope_type": "linear", "factor": "x"}}, "rope_scaling.factor: must be a number\n  value: 'x'\n  Correct the field."),
    "the root of a width": ({"model_type": "recurrent_gemma", "hidden_size": -1}, "config.json: hidden_size: must be at least 1\n  value: -1"),
    "factors of wavelengths": ({**LLAMA, "rope_scaling": {"rope_type": "longrope", "short_factor": [None], "long_factor": [1.0],
                                                          "original_max_position_embeddings": 64}},
                               "rope_scaling.short_factor: must be a list of numbers\n  value: [None]\n  Use the list"),
    "entries": ({**LLAMA, "model_type": "qwen3", "layer_types": ["full_attention"], "use_sliding_window": True},
                "config.json: layer_types: must have an entry for each of the 2 layers\n  value: ['full_attention']\n  Add or delete entries"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_rule_is_stated_in_fields_of_the_config(name: str) -> None:
    data, message = CASES[name]
    with pytest.raises(ConfigError) as caught:
        spec_of_config(Config(data, "config.json"), name="x")
    assert message in str(caught.value)
    assert str(caught.value).count("\n  value: ") == 1


@pytest.mark.parametrize(
    ("model_type", "mappings", "fields"),
    [
        (
            "mpt",
            {"attn_config": {"attn_impl": "flash", "rope": True, "model_type": ""}},
            ("attn_config.rope",),
        ),
        (
            "dbrx",
            {
                "ffn_config": {
                    "moe_jitter_eps": 0.1,
                    "bias": True,
                    "ffn_act_fn": {"name": "silu", "beta": 2.0},
                }
            },
            ("ffn_config.bias", "ffn_config.ffn_act_fn.beta"),
        ),
    ],
)
def test_a_field_that_nothing_reads_is_refused_in_mappings_too(
    model_type: str, mappings: dict[str, Any], fields: tuple[str, ...]
) -> None:
    with pytest.raises(UnsupportedFieldsError) as caught:
        spec_of_config(Config({"model_type": model_type, **mappings}, "config.json"), name="x")
    assert caught.value.fields == fields
    spec_of_config(Config({"model_type": model_type, **mappings}, "config.json"), name="x", ignored=fields)
