"""Laguna against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, VOCAB, WINDOW, lists
from tests.parity.families.family import SPECIAL, FamilyTests
from tests.parity.families.llamas import YARN, rotation

FULL, SLIDING = "full_attention", "sliding_attention"


class TestLaguna(FamilyTests):
    model_class = hf.LagunaForCausalLM
    defaults = {**SPECIAL, "max_position_embeddings": 128}
    configs = {
        "heads by kind": dict(
            vocab_size=61, hidden_size=36, num_hidden_layers=4, num_attention_heads=2, num_key_value_heads=2, head_dim=8,
            num_attention_heads_per_layer=[2, 6, 6, 2], layer_types=[FULL, SLIDING, SLIDING, FULL], sliding_window=4,
            intermediate_size=41, moe_intermediate_size=13, shared_expert_intermediate_size=11, num_experts=5,
            num_experts_per_tok=2, rms_norm_eps=1e-3, moe_routed_scaling_factor=1.7,
        ),
        "a gate per element": dict(
            vocab_size=47, hidden_size=40, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4, head_dim=10,
            intermediate_size=50, moe_intermediate_size=7, shared_expert_intermediate_size=9, num_experts=6,
            num_experts_per_tok=3, gating="per-element", attention_bias=True, layer_types=[SLIDING, FULL, SLIDING],
            mlp_layer_types=["sparse", "dense", "sparse"], sliding_window=6,
            rope_parameters={FULL: {**YARN, "partial_rotary_factor": 0.6}, SLIDING: rotation(70.0)},
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("gating", "per-heads", "Did you mean 'per-head'?"),
        ("num_attention_heads_per_layer", [2, 6, 4, 2], "must be equal in all layers of a kind"),
        ("num_attention_heads_per_layer", [2], "must be a number for each of the 4 layers"),
        ("moe_router_logit_softcapping", 30.0, "specs have no bound on the scores of experts"),
        ("partial_rotary_factor", 0.5, "must be 1.0"),
    )
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        kv_heads, layers = data.draw(st.integers(1, 2), "kv_heads"), data.draw(st.integers(1, 4), "layers")
        kinds = data.draw(lists([FULL, SLIDING], layers), "kinds")
        heads = {
            kind: kv_heads * data.draw(st.integers(1, 3), f"heads of {kind}") for kind in (FULL, SLIDING)
        }
        experts = data.draw(st.integers(1, 6), "experts")
        full = data.draw(st.sampled_from([rotation(500.0), YARN]), "rope")
        return dict(
            vocab_size=VOCAB, hidden_size=st.integers(8, 50), num_hidden_layers=layers, num_key_value_heads=kv_heads,
            num_attention_heads=heads[FULL], num_attention_heads_per_layer=[heads[kind] for kind in kinds],
            layer_types=kinds, head_dim=4 * data.draw(st.integers(1, 5), "head_dim / 4"), sliding_window=WINDOW,
            intermediate_size=st.integers(1, 50), moe_intermediate_size=st.integers(1, 20),
            shared_expert_intermediate_size=st.integers(1, 20), num_experts=experts,
            num_experts_per_tok=st.integers(1, experts), rms_norm_eps=EPS, attention_bias=FLAG,
            gating=st.sampled_from([True, "per-element"]), moe_routed_scaling_factor=st.sampled_from([1.0, 2.5]),
            mlp_layer_types=lists(["dense", "sparse"], layers),
            rope_parameters={FULL: {**full, "partial_rotary_factor": 0.5}, SLIDING: rotation(70.0)},
        )  # fmt: skip
