"""Llama against transformers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import LlamaConfig, LlamaForCausalLM, LlamaModel

from tests.parity.families.harness import check

LINEAR = {"rope_type": "linear", "rope_theta": 1000.0, "factor": 2.5}
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 5000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}  # fmt: skip
YARN = {"rope_type": "yarn", "rope_theta": 700.0, "factor": 4.0, "original_max_position_embeddings": 32}
YARN_STATED = {**YARN, "beta_fast": 8.0, "beta_slow": 2.0, "attention_factor": 0.8, "truncate": False}

CONFIGS = {
    "grouped": dict(
        vocab_size=61, hidden_size=30, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
        head_dim=10, intermediate_size=41, rms_norm_eps=1e-3, max_position_embeddings=128, attention_bias=True,
        mlp_bias=True, tie_word_embeddings=False, rope_parameters={"rope_type": "default", "rope_theta": 500.0},
    ),
    "tied, linear": dict(
        vocab_size=47, hidden_size=33, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=3,
        head_dim=8, intermediate_size=50, rms_norm_eps=1e-6, max_position_embeddings=128, hidden_act="gelu",
        tie_word_embeddings=True, rope_parameters=LINEAR,
    ),
    "yarn": dict(
        vocab_size=31, hidden_size=28, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2,
        head_dim=32, intermediate_size=33, rms_norm_eps=1e-5, max_position_embeddings=128,
        tie_word_embeddings=False, rope_parameters=YARN_STATED,
    ),
}  # fmt: skip


def config_of(**values) -> LlamaConfig:
    values["rope_parameters"] = dict(values["rope_parameters"])
    return LlamaConfig(**values, bos_token_id=0, eos_token_id=0, pad_token_id=0)


@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    check(LlamaForCausalLM, config_of(**CONFIGS[name]), tmp_path)


@pytest.mark.parametrize("model_class", [LlamaModel])
def test_other_heads(model_class, tmp_path):
    check(model_class, config_of(**CONFIGS["grouped"]), tmp_path)


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    kv_heads, groups = data.draw(st.integers(1, 4), "kv_heads"), data.draw(st.integers(1, 3), "groups")
    default = {"rope_type": "default", "rope_theta": data.draw(st.sampled_from([100.0, 1e4, 5e5]), "theta")}
    config = config_of(
        vocab_size=data.draw(st.integers(5, 90), "vocab_size"),
        hidden_size=kv_heads * groups * data.draw(st.integers(4, 8), "hidden_size over heads"),
        num_hidden_layers=data.draw(st.integers(1, 4), "layers"),
        num_attention_heads=kv_heads * groups,
        num_key_value_heads=kv_heads,
        head_dim=2 * data.draw(st.integers(1, 12), "pairs"),
        intermediate_size=data.draw(st.integers(1, 70), "hidden"),
        hidden_act=data.draw(st.sampled_from(["gelu", "gelu_new", "relu", "silu"]), "activation"),
        rms_norm_eps=data.draw(st.sampled_from([1e-6, 1e-5, 1e-2]), "eps"),
        max_position_embeddings=256,
        attention_bias=data.draw(st.booleans(), "attention_bias"),
        mlp_bias=data.draw(st.booleans(), "mlp_bias"),
        tie_word_embeddings=data.draw(st.booleans(), "tied"),
        rope_parameters=data.draw(st.sampled_from([default, LINEAR, LLAMA3, YARN, YARN_STATED]), "rope"),
    )
    directory, seed = tmp_path_factory.mktemp("llama"), data.draw(st.integers(0, 99), "seed")
    check(LlamaForCausalLM, config, directory, seed=seed, onnx=seed % 5 == 0, fuzzed=True)
