"""Qwen2-MoE and Qwen3-MoE against transformers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import Qwen2MoeConfig, Qwen2MoeForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM

from tests.parity.families.llamas import (
    ALL,
    EPS,
    LLAMA3,
    SPECIAL,
    YARN,
    classes,
    draw_head_dim,
    draw_llama,
    labels,
    rotation,
)
from tests.parity.families.mixtures import check
from tests.parity.families.refusals import refused
from tests.thinned import one_in

FULL, SLIDING = "full_attention", "sliding_attention"

CONFIGS = {
    "dense first": dict(
        vocab_size=61, hidden_size=60, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
        intermediate_size=41, moe_intermediate_size=13, num_experts=5, num_experts_per_tok=2, rms_norm_eps=1e-3,
        max_position_embeddings=128, mlp_only_layers=[0], norm_topk_prob=True, tie_word_embeddings=True,
        rope_parameters=rotation(500.0),
    ),
    "every other": dict(
        vocab_size=47, hidden_size=40, num_hidden_layers=5, num_attention_heads=5, num_key_value_heads=5,
        intermediate_size=50, moe_intermediate_size=7, num_experts=4, num_experts_per_tok=1, rms_norm_eps=1e-5,
        hidden_act="gelu_new", max_position_embeddings=128, decoder_sparse_step=2, use_sliding_window=True,
        sliding_window=4, rope_parameters=YARN,
    ),
    "every layer": dict(
        vocab_size=31, hidden_size=28, num_hidden_layers=2, num_attention_heads=7, num_key_value_heads=1,
        intermediate_size=33, moe_intermediate_size=9, num_experts=6, num_experts_per_tok=6,
        max_position_embeddings=128, sliding_window=5, rope_parameters=LLAMA3,
    ),
}  # fmt: skip
QWEN2 = {
    "dense first": dict(shared_expert_intermediate_size=17, qkv_bias=False),
    "every other": dict(shared_expert_intermediate_size=5, max_window_layers=3),
    "every layer": dict(shared_expert_intermediate_size=20, max_window_layers=1),
}
"""What Qwen2 has beyond."""
QWEN3 = {
    "dense first": dict(head_dim=14, attention_bias=True),
    "every other": dict(head_dim=8),
    "every layer": dict(head_dim=16, attention_bias=True),
}
"""What Qwen3 has beyond."""


def configured(config_class, **values):
    values["rope_parameters"] = dict(values["rope_parameters"])
    return config_class(**{**SPECIAL, **values})


def qwen2(name: str, **more) -> Qwen2MoeConfig:
    return configured(Qwen2MoeConfig, **CONFIGS[name], **QWEN2[name], **more)


def qwen3(name: str, **more) -> Qwen3MoeConfig:
    return configured(Qwen3MoeConfig, **CONFIGS[name], **QWEN3[name], **more)


@one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration_of_qwen2(name, tmp_path):
    check(Qwen2MoeForCausalLM, qwen2(name), tmp_path)


@one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration_of_qwen3(name, tmp_path):
    check(Qwen3MoeForCausalLM, qwen3(name), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("model_class", classes("Qwen2Moe", *ALL))
def test_other_heads_of_qwen2(model_class, tmp_path):
    check(model_class, qwen2("dense first", **labels(model_class)), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("model_class", classes("Qwen3Moe", *ALL))
def test_other_heads_of_qwen3(model_class, tmp_path):
    check(model_class, qwen3("every layer", **labels(model_class)), tmp_path)


def draw_common(data) -> dict:
    common = draw_llama(data)
    layers, experts = common["num_hidden_layers"], data.draw(st.integers(2, 7), "experts")
    with_mixture = data.draw(st.integers(1, layers), "sparse step")
    dense = st.lists(st.integers(0, layers).filter(lambda layer: (layer + 1) % with_mixture), max_size=2)
    top_k = data.draw(st.integers(1, experts), "top_k")
    return dict(
        **common,
        rms_norm_eps=data.draw(EPS, "eps"),
        moe_intermediate_size=data.draw(st.integers(1, 30), "width of an expert"),
        num_experts=experts,
        num_experts_per_tok=top_k,
        norm_topk_prob=top_k > 1 and data.draw(st.booleans(), "normalize"),
        decoder_sparse_step=with_mixture,
        mlp_only_layers=data.draw(dense, "dense layers"),
    )


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration_of_qwen2(data, tmp_path_factory):
    common = draw_common(data)
    layers = common["num_hidden_layers"]
    windows = {"max_window_layers": data.draw(st.integers(0, layers), "max_window_layers")}
    if data.draw(st.booleans(), "windows"):
        windows |= {"use_sliding_window": True, "sliding_window": data.draw(st.integers(2, 15), "window")}
        if data.draw(st.booleans(), "layer_types"):
            kinds = st.lists(st.sampled_from([FULL, SLIDING]), min_size=layers, max_size=layers)
            windows["layer_types"] = data.draw(kinds, "kinds")
    config = Qwen2MoeConfig(
        **common,
        **windows,
        qkv_bias=data.draw(st.booleans(), "qkv_bias"),
        shared_expert_intermediate_size=data.draw(st.integers(1, 30), "shared"),
    )
    directory, seed = tmp_path_factory.mktemp("qwen2"), data.draw(st.integers(0, 99), "seed")
    check(Qwen2MoeForCausalLM, config, directory, seed=seed, length=17, onnx=seed % 5 == 0, fuzzed=True)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration_of_qwen3(data, tmp_path_factory):
    config = Qwen3MoeConfig(
        **draw_common(data),
        head_dim=draw_head_dim(data),
        attention_bias=data.draw(st.booleans(), "attention_bias"),
        use_sliding_window=data.draw(st.booleans(), "windows"),
        sliding_window=data.draw(st.integers(2, 15), "window"),
    )
    directory, seed = tmp_path_factory.mktemp("qwen3"), data.draw(st.integers(0, 99), "seed")
    check(Qwen3MoeForCausalLM, config, directory, seed=seed, length=17, onnx=seed % 5 == 0, fuzzed=True)


@pytest.mark.parametrize(
    ("make", "field", "value", "said"),
    [
        (qwen2, "hidden_act", "silo", "did you mean 'silu'?"),
        (qwen2, "decoder_sparse_step", 0, "must be at least 1"),
        (qwen2, "mlp_only_layers", ["0"], "must be a list of layers by number"),
        (qwen2, "layer_types", [SLIDING, FULL, FULL], "without a window"),
        (qwen2, "attention_bias", True, "not modelled"),
        (qwen3, "shared_expert_intermediate_size", 8, "not modelled"),
        (qwen3, "layer_types", [FULL, FULL, FULL], "not modelled"),
    ],
)
def test_what_is_not_modelled_is_refused(make, field, value, said):
    refused(make("dense first"), field, value, said)
