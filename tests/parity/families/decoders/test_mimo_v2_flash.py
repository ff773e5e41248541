"""MiMo-V2-Flash against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, VOCAB, WINDOW, lists
from tests.parity.families.family import SPECIAL, FamilyTests
from tests.parity.families.llamas import YARN, rotation
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config

FULL, SLIDING = "full_attention", "sliding_attention"


def by_kind(full: dict, theta: float, part: float = 0.5) -> dict:
    return {
        FULL: {**full, "partial_rotary_factor": part},
        SLIDING: rotation(theta, partial_rotary_factor=part),
    }


class TestMiMoV2Flash(FamilyTests):
    model_class = hf.MiMoV2FlashForCausalLM
    defaults = {**SPECIAL, "max_position_embeddings": 128}
    configs = {
        "all but every sixth": dict(
            vocab_size=61, hidden_size=36, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=1,
            head_dim=16, v_head_dim=6, intermediate_size=41, moe_intermediate_size=13, n_routed_experts=5,
            num_experts_per_tok=2, rms_norm_eps=1e-3, sliding_window=4, rope_parameters=by_kind(rotation(500.0), 70.0),
        ),
        "biases": dict(
            vocab_size=47, hidden_size=40, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
            head_dim=12, v_head_dim=20, intermediate_size=50, moe_intermediate_size=7, n_routed_experts=6,
            num_experts_per_tok=3, n_group=2, topk_group=1, norm_topk_prob=False, routed_scaling_factor=2.5,
            attention_bias=True, attention_value_scale=None, sliding_window=6, layer_types=[SLIDING, FULL, SLIDING],
            mlp_layer_types=["sparse", "dense", "sparse"], rope_parameters=by_kind(YARN, 90.0),
        ),
        "windows alone": dict(
            vocab_size=31, hidden_size=28, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=1,
            head_dim=24, v_head_dim=24, intermediate_size=33, moe_intermediate_size=9, n_routed_experts=4,
            num_experts_per_tok=4, sliding_window=3, layer_types=[SLIDING, SLIDING],
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("layer_types", [FULL], "each of the 3 layers"),
        ("rope_parameters", {FULL: YARN}, "must be stated beside a scaling"),
        ("partial_rotary_factor", 0.5, "must be 0.334"),
        ("swa_num_key_value_heads", 4, "layers with a window have twice as many"),
        ("add_full_attention_sink_bias", True, "the reference has sinks in layers with a window"),
        ({"layer_types": None, "hybrid_layer_pattern": [0, 2, 1]}, "must be 0 or 1 for each of the 3 layers"),
        ({"mlp_layer_types": None, "moe_layer_freq": [0, 1]}, "must be 0 or 1 for each of the 3 layers"),
    )
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        kv_heads, layers = data.draw(st.integers(1, 2), "kv_heads"), data.draw(st.integers(1, 4), "layers")
        groups = data.draw(st.integers(1, 2), "groups")
        experts = groups * data.draw(st.integers(2, 4), "experts of a group")
        rope = data.draw(st.sampled_from([rotation(500.0), YARN]), "rope")
        return dict(
            vocab_size=VOCAB, hidden_size=st.integers(8, 50), num_hidden_layers=layers, num_key_value_heads=kv_heads,
            num_attention_heads=2 * kv_heads * data.draw(st.integers(1, 2), "heads of a group"),
            head_dim=4 * data.draw(st.integers(1, 6), "head_dim / 4"),
            v_head_dim=st.integers(2, 24), intermediate_size=st.integers(1, 50), moe_intermediate_size=st.integers(1, 20),
            n_routed_experts=experts, num_experts_per_tok=st.integers(1, experts // groups), n_group=groups,
            topk_group=st.integers(1, groups), rms_norm_eps=EPS, sliding_window=WINDOW, attention_bias=FLAG,
            attention_value_scale=st.sampled_from([None, 0.7]), routed_scaling_factor=st.sampled_from([None, 2.5]),
            layer_types=lists([FULL, SLIDING], layers), mlp_layer_types=lists(["dense", "sparse"], layers),
            rope_parameters=by_kind(rope, 70.0, data.draw(st.sampled_from([0.5, 1.0]), "rotated")),
        )  # fmt: skip


def test_a_published_config_numbers_kinds_and_states_the_tokens_before_a_query():
    data = TestMiMoV2Flash.configured().to_dict()
    for name in ("layer_types", "mlp_layer_types", "rope_parameters", "rms_norm_eps"):
        del data[name]
    data |= {
        "head_dim": 18,
        "hybrid_layer_pattern": [1, 0, 1], "moe_layer_freq": [0, 0, 1], "sliding_window_size": 4, "rope_theta": 300.0,
        "swa_rope_theta": 90.0, "layernorm_epsilon": 1e-3, "partial_rotary_factor": 0.334, "routed_scaling_factor": None,
        "swa_num_key_value_heads": 2, "swa_v_head_dim": 6, "n_shared_experts": None,
    }  # fmt: skip
    spec = spec_of_config(Config(data, "config.json"), name="tiny")
    assert spec.decoder is not None
    blocks = spec.decoder.layer_blocks()
    assert [(block.attention.window, block.attention.kv_heads, block.attention.sinks) for block in blocks] == [
        (5, 2, True), (None, 1, False), (5, 2, True),
    ]  # fmt: skip
    assert [block.feed_forward.kind for block in blocks] == ["gated", "gated", "mixture"]
    common, local = spec.model_dump()["position"], blocks[0].model_dump()
    assert (common["theta"], common["dimensions"]) == (300.0, 6)
    assert (local["attention"]["position"]["theta"], local["norm"]["eps"]) == (90.0, 1e-3)
