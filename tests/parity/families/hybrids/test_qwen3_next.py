"""Qwen3-Next and the text models of Qwen3.5 against transformers."""

from __future__ import annotations

from typing import Any

import pytest
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, lists
from tests.parity.families.family import FamilyTests
from tests.parity.families.llamas import ALL, LLAMA3, YARN, draw_llama, rotation
from tests.parity.families.mixtures import draw_experts
from tests.parity.families.sizes import MULTI_HEAD, MULTI_QUERY
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError

FULL, LINEAR = "full_attention", "linear_attention"

CONFIGS: dict[str, dict[str, Any]] = {
    "every fourth": dict(
        vocab_size=61, hidden_size=36, num_hidden_layers=4, num_attention_heads=6, num_key_value_heads=2, head_dim=8,
        intermediate_size=41, rms_norm_eps=1e-3, max_position_embeddings=128, tie_word_embeddings=True,
        linear_num_key_heads=2, linear_num_value_heads=6, linear_key_head_dim=5, linear_value_head_dim=7,
        rope_parameters=rotation(500.0),
    ),
    "listed": dict(
        MULTI_HEAD, num_hidden_layers=3, head_dim=12, max_position_embeddings=128, attention_bias=True,
        layer_types=[FULL, LINEAR, LINEAR], linear_num_key_heads=3, linear_num_value_heads=3, linear_key_head_dim=8,
        linear_value_head_dim=4, linear_conv_kernel_dim=3, hidden_act="gelu_new",
        rope_parameters={**YARN, "partial_rotary_factor": 0.5},
    ),
    "attention alone": dict(
        MULTI_QUERY, num_hidden_layers=2, head_dim=4, max_position_embeddings=128, layer_types=[FULL, FULL],
        rope_parameters={**LLAMA3, "partial_rotary_factor": 1.0},
    ),
}  # fmt: skip
SPARSE: dict[str, dict[str, Any]] = {
    "every fourth": dict(
        moe_intermediate_size=13, num_experts=5, num_experts_per_tok=2, shared_expert_intermediate_size=17,
        mlp_only_layers=[1],
    ),
    "listed": dict(
        moe_intermediate_size=7, num_experts=4, num_experts_per_tok=1, shared_expert_intermediate_size=5,
        norm_topk_prob=False, decoder_sparse_step=2,
    ),
    "attention alone": dict(
        moe_intermediate_size=9, num_experts=6, num_experts_per_tok=6, shared_expert_intermediate_size=20
    ),
}  # fmt: skip
"""The mixtures of Qwen3-Next."""


def draw_layers(data) -> dict:
    common = draw_llama(data)
    layers, key_heads = common["num_hidden_layers"], data.draw(st.integers(1, 3), "key heads")
    kinds = lists([FULL, LINEAR], layers)
    part = data.draw(st.sampled_from([0.5, 1.0]), "rotated")
    common["rope_parameters"] = {**common["rope_parameters"], "partial_rotary_factor": part}
    return dict(
        **common, head_dim=8 * data.draw(st.integers(1, 3), "head_dim"), rms_norm_eps=EPS, attention_bias=FLAG,
        layer_types=kinds.filter(lambda kinds: FULL in kinds), linear_num_key_heads=key_heads,
        linear_num_value_heads=key_heads * data.draw(st.integers(1, 3), "value heads of a key head"),
        linear_key_head_dim=st.integers(2, 9), linear_value_head_dim=st.integers(2, 9),
        linear_conv_kernel_dim=st.integers(2, 5),
    )  # fmt: skip


REFUSALS = (
    ("hidden_act", "silo", "Did you mean 'silu'?"),
    ("layer_types", [LINEAR], "an entry for each of the 4 layers"),
    ("layer_types", ["linear_attend"] * 4, "Did you mean 'linear_attention'?"),
    ("rope_parameters", {"rope_type": "yarnn", "factor": 2.0}, "Did you mean 'yarn'?"),
)


class TestQwen3Next(FamilyTests):
    model_class = hf.Qwen3NextForCausalLM
    configs = {name: {**values, **SPARSE[name]} for name, values in CONFIGS.items()}
    heads = ALL
    refusals = (*REFUSALS, ("mlp_only_layers", ["0"], "must be a list of layers by number"))

    @staticmethod
    def draw(data):
        drawn = draw_layers(data)
        return dict(
            **drawn, **draw_experts(data), moe_intermediate_size=st.integers(1, 30),
            shared_expert_intermediate_size=st.integers(1, 30),
            decoder_sparse_step=st.integers(1, drawn["num_hidden_layers"]),
        )  # fmt: skip


class TestQwen35(FamilyTests):
    model_class = hf.Qwen3_5ForCausalLM
    configs = CONFIGS
    heads = ("Model", "ForSequenceClassification")
    refusals = REFUSALS

    @staticmethod
    def draw(data):
        return draw_layers(data)


def always_normalized(values: dict) -> dict:
    """Values for Qwen3.5's mixtures, in all layers and with weights that add up to 1."""
    lacking = ("decoder_sparse_step", "mlp_only_layers", "norm_topk_prob", "intermediate_size")
    return {name: value for name, value in values.items() if name not in lacking}


class TestQwen35Moe(FamilyTests):
    model_class = hf.Qwen3_5MoeForCausalLM
    configs = {name: always_normalized({**values, **SPARSE[name]}) for name, values in CONFIGS.items()}
    heads = ("Model",)
    refusals = (*REFUSALS, ("attn_output_gate", False, "no attention without a gate"))

    @staticmethod
    def draw(data):
        return always_normalized(TestQwen3Next.draw(data))


def test_the_interval_counts_where_no_list_says_which_layers_attend():
    data = TestQwen3Next.configured("every fourth").to_dict()
    del data["layer_types"]
    for every, expected in ((None, [3]), (2, [1, 3])):
        stated = {} if every is None else {"full_attention_interval": every}
        spec = spec_of_config(Config({**data, **stated}, "config.json"), name="tiny")
        found = [i for i, block in enumerate(spec.decoder.layer_blocks()) if block.attention is not None]
        assert found == expected
    with pytest.raises(ConfigError, match="full_attention_interval: must be at least 1"):
        spec_of_config(Config({**data, "full_attention_interval": 0}, "config.json"), name="tiny")
