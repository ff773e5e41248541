"""Mixtral against transformers."""

from __future__ import annotations

import pytest
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, HEAD_DIM, WINDOW
from tests.parity.families.family import FamilyTests
from tests.parity.families.harness import check
from tests.parity.families.llamas import ALL, LINEAR, YARN_STATED, draw_llama, rotation
from tests.parity.families.mixtures import breaks_a_rule
from tests.parity.families.sizes import GROUPED
from tests.thinned import one_in


def test_more_experts_for_a_token_than_there_are_are_refused():
    said = "num_experts_per_tok: must not exceed num_local_experts, which is 5"
    breaks_a_rule(TestMixtral.configured("two of five"), {"num_experts_per_tok": 6}, said)


@one_in(2)
@pytest.mark.parametrize("experts", [1, 5])
def test_one_expert_for_a_token(experts, tmp_path):
    sizes = {"num_local_experts": experts, "num_experts_per_tok": 1}
    check(hf.MixtralForCausalLM, TestMixtral.configured("two of five", **{**sizes}), tmp_path)


class TestMixtral(FamilyTests):
    model_class = hf.MixtralForCausalLM
    configs = {
        "two of five": dict(
            GROUPED, hidden_size=30, head_dim=10, rms_norm_eps=1e-3, max_position_embeddings=128, num_local_experts=5,
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
    heads = ALL
    refusals = [
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("attention_bias", True, "unsupported fields"),
        ("n_shared_experts", 1, "unsupported fields"),
    ]
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        experts = data.draw(st.integers(1, 7), "experts")
        return dict(
            **draw_llama(data), head_dim=HEAD_DIM, rms_norm_eps=EPS, num_local_experts=experts,
            num_experts_per_tok=st.integers(1, experts), sliding_window=st.none() | WINDOW,
        )  # fmt: skip
