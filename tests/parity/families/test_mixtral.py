"""Mixtral against transformers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import MixtralConfig, MixtralForCausalLM

from tests.parity.families.llamas import (
    ALL,
    EPS,
    LINEAR,
    SPECIAL,
    YARN_STATED,
    classes,
    draw_head_dim,
    draw_llama,
    labels,
    rotation,
)
from tests.parity.families.mixtures import breaks_a_rule, check
from tests.parity.families.refusals import refused
from tests.thinned import one_in

CONFIGS = {
    "two of five": dict(
        vocab_size=61, hidden_size=30, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
        head_dim=10, intermediate_size=41, rms_norm_eps=1e-3, max_position_embeddings=128, num_local_experts=5,
        num_experts_per_tok=2, rope_parameters=rotation(500.0),
    ),
    "window, all": dict(
        vocab_size=47, hidden_size=33, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=3,
        head_dim=8, intermediate_size=9, hidden_act="gelu", max_position_embeddings=128, num_local_experts=3,
        num_experts_per_tok=3, sliding_window=4, tie_word_embeddings=True, rope_parameters=LINEAR,
    ),
    "three of four, yarn": dict(
        vocab_size=31, hidden_size=28, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=1,
        head_dim=32, intermediate_size=13, rms_norm_eps=1e-6, max_position_embeddings=128, num_local_experts=4,
        num_experts_per_tok=3, sliding_window=7, rope_parameters=YARN_STATED, router_jitter_noise=0.1,
        output_router_logits=True,
    ),
}  # fmt: skip


def config_of(**values) -> MixtralConfig:
    values["rope_parameters"] = dict(values["rope_parameters"])
    return MixtralConfig(**{**SPECIAL, **values})


@one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    check(MixtralForCausalLM, config_of(**CONFIGS[name]), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("model_class", classes("Mixtral", *ALL))
def test_other_heads(model_class, tmp_path):
    check(model_class, config_of(**CONFIGS["two of five"], **labels(model_class)), tmp_path)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    experts = data.draw(st.integers(2, 7), "experts")
    config = MixtralConfig(
        **draw_llama(data),
        head_dim=draw_head_dim(data),
        rms_norm_eps=data.draw(EPS, "eps"),
        num_local_experts=experts,
        num_experts_per_tok=data.draw(st.integers(2, experts), "top_k"),
        sliding_window=data.draw(st.none() | st.integers(2, 15), "window"),
    )
    directory, seed = tmp_path_factory.mktemp("mixtral"), data.draw(st.integers(0, 99), "seed")
    check(MixtralForCausalLM, config, directory, seed=seed, length=17, onnx=seed % 5 == 0, fuzzed=True)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("hidden_act", "silo", "did you mean 'silu'?"),
        ("attention_bias", True, "not modelled"),
        ("n_shared_experts", 1, "not modelled"),
    ],
)
def test_what_is_not_modelled_is_refused(field, value, said):
    refused(config_of(**CONFIGS["two of five"]), field, value, said)


@pytest.mark.parametrize(
    ("top_k", "said"),
    [
        (6, "must not exceed experts, which is 5"),
        (1, "set normalize: false, or top_k: 2 or more"),
    ],
)
def test_what_breaks_a_rule_is_refused(top_k, said):
    breaks_a_rule(config_of(**CONFIGS["two of five"]), {"num_experts_per_tok": top_k}, said)
