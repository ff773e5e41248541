"""LFM2 and LFM2-MoE against transformers.

Where convolutions have biases, the reference's windows hold the biases of padding before a row's first token: those
configurations are padded on the right.
"""

from __future__ import annotations

from typing import Any

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG
from tests.parity.families.family import FamilyTests
from tests.parity.families.llamas import LLAMA3, YARN, draw_llama, rotation
from tests.parity.families.mixtures import breaks_a_rule, draw_experts

FULL, CONV = "full_attention", "conv"

CONFIGS: dict[str, dict[str, Any]] = {
    "both kinds": dict(
        vocab_size=61, hidden_size=36, num_hidden_layers=5, num_attention_heads=6, num_key_value_heads=2,
        norm_eps=1e-3, max_position_embeddings=128, layer_types=[CONV, CONV, FULL, CONV, FULL],
        rope_parameters=rotation(500.0),
    ),
    "biases": dict(
        vocab_size=47, hidden_size=40, num_hidden_layers=3, num_attention_heads=5, num_key_value_heads=5,
        max_position_embeddings=128, layer_types=[CONV, FULL, CONV], conv_bias=True, conv_L_cache=5,
        tie_word_embeddings=False, rope_parameters=YARN,
    ),
    "attention alone": dict(
        vocab_size=31, hidden_size=28, num_hidden_layers=2, num_attention_heads=7, num_key_value_heads=1,
        max_position_embeddings=128, layer_types=[FULL, FULL], conv_L_cache=4, rope_parameters=LLAMA3,
    ),
}  # fmt: skip
DENSE: dict[str, dict[str, Any]] = {
    "both kinds": dict(intermediate_size=90, block_multiple_of=8),
    "biases": dict(intermediate_size=60, block_multiple_of=16, block_ffn_dim_multiplier=1.3),
    "attention alone": dict(intermediate_size=33, block_auto_adjust_ff_dim=False),
}
"""The widths of LFM2."""
SPARSE: dict[str, dict[str, Any]] = {
    "both kinds": dict(
        intermediate_size=41, moe_intermediate_size=13, num_experts=5, num_experts_per_tok=2, num_dense_layers=2
    ),
    "biases": dict(
        intermediate_size=50, moe_intermediate_size=7, num_experts=4, num_experts_per_tok=1, num_dense_layers=0,
        routed_scaling_factor=1.7, norm_topk_prob=False,
    ),
    "attention alone": dict(
        intermediate_size=33, moe_intermediate_size=9, num_experts=6, num_experts_per_tok=6, num_dense_layers=1,
        use_expert_bias=False,
    ),
}  # fmt: skip
"""The mixtures of LFM2-MoE."""


class Lfm2Tests(FamilyTests):
    def check(self, model_class, config, directory, **options):
        sides = ("right",) if config.conv_bias else ("right", "left")
        return super().check(model_class, config, directory, sides=sides, **options)


def draw_layers(data) -> dict:
    common = draw_llama(data)
    layers = common["num_hidden_layers"]
    del common["hidden_act"]
    return dict(
        **common, norm_eps=EPS,
        layer_types=st.lists(st.sampled_from([FULL, CONV]), min_size=layers, max_size=layers).filter(lambda kinds: FULL in kinds),
        conv_bias=FLAG, conv_L_cache=st.integers(2, 6),
    )  # fmt: skip


def test_a_convolution_needs_a_window():
    breaks_a_rule(
        TestLfm2.configured("both kinds"),
        {"conv_L_cache": 1},
        "must be greater than or equal to 2",
    )


class TestLfm2(Lfm2Tests):
    model_class = hf.Lfm2ForCausalLM
    configs = {name: {**values, **DENSE[name]} for name, values in CONFIGS.items()}
    heads = ("Model",)
    refusals = (
        ("layer_types", [CONV] * 4, "an entry for each of the 5 layers"),
        ("layer_types", ["convo"] * 5, "Did you mean 'conv'?"),
        ("block_multiple_of", 0, "must be at least 1"),
        ("rope_parameters", {"rope_type": "yarnn", "factor": 2.0}, "Did you mean 'yarn'?"),
    )

    @staticmethod
    def draw(data):
        return dict(
            **draw_layers(data), block_multiple_of=st.integers(1, 9),
            block_ffn_dim_multiplier=st.sampled_from([1.0, 0.7, 1.5]), block_auto_adjust_ff_dim=FLAG,
        )  # fmt: skip


class TestLfm2Moe(Lfm2Tests):
    model_class = hf.Lfm2MoeForCausalLM
    configs = {name: {**values, **SPARSE[name]} for name, values in CONFIGS.items()}
    heads = ("Model",)
    refusals = (
        ("layer_types", [CONV] * 4, "an entry for each of the 5 layers"),
        ("shared_expert_intermediate_size", 8, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        drawn = draw_layers(data)
        return dict(
            **drawn, **draw_experts(data), moe_intermediate_size=st.integers(1, 30),
            num_dense_layers=st.integers(0, drawn["num_hidden_layers"] - 1), use_expert_bias=FLAG,
            routed_scaling_factor=st.sampled_from([1.0, 2.5]),
        )  # fmt: skip
