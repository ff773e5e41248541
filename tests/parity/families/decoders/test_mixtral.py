"""Mixtral against transformers."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from transformers import MixtralConfig, MixtralForCausalLM

from tests.parity.families.family import FamilyTests
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


def test_more_experts_for_a_token_than_there_are_are_refused():
    said = "must not exceed experts, which is 5"
    breaks_a_rule(config_of(**CONFIGS["two of five"]), {"num_experts_per_tok": 6}, said)


@pytest.mark.parametrize("experts", [1, 5])
def test_one_expert_for_a_token(experts, tmp_path):
    sizes = {"num_local_experts": experts, "num_experts_per_tok": 1}
    check(MixtralForCausalLM, config_of(**{**CONFIGS["two of five"], **sizes}), tmp_path)


class TestMixtral(FamilyTests):
    model_class = MixtralForCausalLM
    configs = CONFIGS
    config = staticmethod(config_of)
    check = staticmethod(check)
    others = [(each, labels(each)) for each in classes("Mixtral", *ALL)]
    of_others = "two of five"
    refusals = [
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("attention_bias", True, "unsupported fields"),
        ("n_shared_experts", 1, "unsupported fields"),
    ]
    of_refusals = "two of five"
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        experts = data.draw(st.integers(1, 7), "experts")
        return dict(
            **draw_llama(data),
            head_dim=draw_head_dim(data),
            rms_norm_eps=data.draw(EPS, "eps"),
            num_local_experts=experts,
            num_experts_per_tok=data.draw(st.integers(1, experts), "top_k"),
            sliding_window=data.draw(st.none() | st.integers(2, 15), "window"),
        )
