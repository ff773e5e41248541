"""Nemotron-H against transformers, which does not tie embeddings to the head, whatever ``tie_word_embeddings`` says."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, VOCAB
from tests.parity.families.family import SPECIAL
from tests.parity.families.mixers import MixerTests
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config

DENSE = dict(
    vocab_size=61, hidden_size=30, num_attention_heads=6, num_key_value_heads=2, head_dim=4, intermediate_size=41,
    mamba_num_heads=8, mamba_head_dim=6, n_groups=2, ssm_state_size=7, layer_norm_epsilon=1e-3,
    layers_block_type=["mamba", "mlp", "mamba", "attention", "mlp"],
)  # fmt: skip
MIXED = dict(
    vocab_size=47, hidden_size=20, num_attention_heads=5, num_key_value_heads=5, head_dim=6, intermediate_size=33,
    mamba_num_heads=3, mamba_head_dim=8, n_groups=1, ssm_state_size=5, conv_kernel=3, use_conv_bias=False,
    n_routed_experts=6, num_experts_per_tok=2, n_group=3, topk_group=2, moe_intermediate_size=9,
    moe_shared_expert_intermediate_size=11, routed_scaling_factor=2.5, mlp_bias=True,
    layers_block_type=["mamba", "moe", "attention", "moe", "mlp"],
)  # fmt: skip


class TestNemotronH(MixerTests):
    model_class = hf.NemotronHForCausalLM
    defaults = {**SPECIAL, "max_position_embeddings": 128}
    configs = {"dense": DENSE, "mixtures": MIXED}
    heads = ("Model",)
    refusals = (
        ("mlp_hidden_act", "silo", "Did you mean 'silu'?"),
        ("moe_latent_size", 8, "must be null"),
        ("layers_block_type", ["mamba", "mpl"], "Did you mean 'mlp'?"),
        ("residual_multiplier", 0.5, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        kv_heads, groups = data.draw(st.integers(1, 3), "kv_heads"), data.draw(st.integers(1, 3), "groups")
        experts = data.draw(st.integers(2, 6), "experts")
        kinds = st.sampled_from(["mamba", "attention", "mlp", "moe"])
        return dict(
            vocab_size=VOCAB, hidden_size=st.integers(4, 40),
            num_attention_heads=kv_heads * data.draw(st.integers(1, 3), "queries per key"),
            num_key_value_heads=kv_heads, head_dim=2 * data.draw(st.integers(1, 6), "head_dim / 2"),
            intermediate_size=st.integers(1, 40),
            mamba_num_heads=groups * data.draw(st.integers(1, 3), "heads per group"),
            mamba_head_dim=st.integers(1, 9), n_groups=groups, ssm_state_size=st.integers(1, 9),
            n_routed_experts=experts, num_experts_per_tok=st.integers(1, experts),
            moe_intermediate_size=st.integers(1, 20), moe_shared_expert_intermediate_size=st.integers(1, 20),
            layers_block_type=["mamba", *data.draw(st.lists(kinds, max_size=4), "layers"), "attention"],
            layer_norm_epsilon=EPS,
        )  # fmt: skip


def test_layers_as_letters() -> None:
    data = TestNemotronH.config(**DENSE).to_dict()
    del data["layers_block_type"]
    lettered = Config({**data, "hybrid_override_pattern": "M-M*-"}, "config.json")
    listed = Config(TestNemotronH.config(**DENSE).to_dict(), "config.json")
    assert spec_of_config(lettered, name="tiny") == spec_of_config(listed, name="tiny")
