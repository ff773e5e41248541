"""The text models of Gemma 4 against transformers."""

from __future__ import annotations

import pytest
import torch
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import FLAG
from tests.parity.families.family import FamilyTests, halve_matrices
from tests.parity.families.llamas import LINEAR, rotation
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError

FULL, SLIDING = "full_attention", "sliding_attention"


def proportional(part: float, theta: float = 500.0, **more: float) -> dict:
    return {"rope_type": "proportional", "partial_rotary_factor": part, "rope_theta": theta, **more}


class TestGemma4(FamilyTests):
    model_class = hf.Gemma4ForCausalLM
    configs = {
        "small": dict(
            vocab_size=61, hidden_size=30, num_hidden_layers=6, num_attention_heads=4, num_key_value_heads=1,
            head_dim=8, global_head_dim=16, intermediate_size=21, rms_norm_eps=1e-3, max_position_embeddings=128,
            layer_types=[SLIDING, FULL, SLIDING, SLIDING, SLIDING, FULL], sliding_window=4, num_kv_shared_layers=3,
            use_double_wide_mlp=True, hidden_size_per_layer_input=6, vocab_size_per_layer_input=61,
            final_logit_softcapping=2.5, rope_parameters={FULL: proportional(0.25), SLIDING: rotation(70.0)},
        ),
        "keys are values": dict(
            vocab_size=47, hidden_size=33, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=3,
            num_global_key_value_heads=2, head_dim=10, global_head_dim=12, intermediate_size=37,
            max_position_embeddings=128, layer_types=[SLIDING, FULL, FULL], sliding_window=6, attention_k_eq_v=True,
            hidden_size_per_layer_input=0, attention_bias=True, tie_word_embeddings=False,
            hidden_activation="silu",
            rope_parameters={FULL: proportional(0.6, factor=2.0), SLIDING: LINEAR},
        ),
        "as many": dict(
            vocab_size=31, hidden_size=28, num_hidden_layers=4, num_attention_heads=2, num_key_value_heads=2,
            head_dim=12, global_head_dim=12, intermediate_size=33, max_position_embeddings=128, num_kv_shared_layers=1,
            layer_types=[FULL, SLIDING, FULL, FULL], sliding_window=3, hidden_size_per_layer_input=5,
            vocab_size_per_layer_input=40, rope_parameters={FULL: rotation(300.0), SLIDING: rotation(90.0)},
        ),
        "experts": dict(
            vocab_size=37, hidden_size=26, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            num_global_key_value_heads=1, head_dim=6, global_head_dim=8, intermediate_size=19, rms_norm_eps=1e-4,
            max_position_embeddings=64, layer_types=[SLIDING, FULL], sliding_window=4, attention_k_eq_v=True,
            hidden_size_per_layer_input=0, enable_moe_block=True, num_experts=5, top_k_experts=2,
            moe_intermediate_size=9, rope_parameters={FULL: proportional(0.5), SLIDING: rotation(70.0)},
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("use_bidirectional_attention", "all", "must be null"),
        ("rope_parameters", {FULL: {"rope_type": "proportiona"}}, "Did you mean 'proportional'?"),
        ("num_kv_shared_layers", 6, "must be from 0 to 5"),
        ("per_layer_config", {"1": {"head_dim": 16}}, "must name the layers of full_attention: 1, 5"),
        ("per_layer_config", {"1": {"head_dim": 16}, "5": {}}, "equal in all layers that it names"),
    )
    drawn = {"length": 17}

    @staticmethod
    def prepare(reference, seed):
        """The factors of layers are buffers."""
        halve_matrices(reference, seed)
        generator = torch.Generator().manual_seed(seed)
        for name, buffer in reference.named_buffers():
            if name.endswith("layer_scalar"):
                buffer.uniform_(0.5, 1.5, generator=generator)

    @staticmethod
    def draw(data):  # the reference fails on layers that reuse keys and values without embeddings per layer
        heads = data.draw(st.sampled_from([1, 2, 4]), "heads")
        depth = data.draw(st.integers(2, 6), "layers")
        shared = data.draw(st.integers(0, depth - 2), "layers that reuse keys and values")
        kinds = [SLIDING, FULL] if depth - shared > 1 else [FULL]
        own = data.draw(st.permutations([*kinds, *[FULL] * (depth - shared - len(kinds))]), "kinds")
        later = st.lists(st.sampled_from(kinds), min_size=shared, max_size=shared)
        layers = [*own, *data.draw(later, "kinds of the others")]
        layers[-1] = FULL
        ropes = st.sampled_from([rotation(30.0), proportional(0.5), proportional(1.0, factor=3.0), LINEAR])
        width = st.sampled_from([4, 8, 10])
        return dict(
            vocab_size=47, hidden_size=st.integers(16, 40), num_hidden_layers=depth, num_attention_heads=heads,
            num_key_value_heads=st.sampled_from([1, heads]), head_dim=width, global_head_dim=width,
            attention_k_eq_v=FLAG, num_global_key_value_heads=1, intermediate_size=st.integers(8, 40),
            layer_types=layers, sliding_window=st.integers(1, 12), num_kv_shared_layers=shared,
            use_double_wide_mlp=FLAG, max_position_embeddings=64,
            hidden_size_per_layer_input=st.sampled_from([4, 7] if shared else [0, 4, 7]),
            vocab_size_per_layer_input=st.sampled_from([47, 60]),
            rope_parameters={kind: dict(data.draw(ropes, kind)) for kind in (FULL, SLIDING)}, rms_norm_eps=1e-3,
        )  # fmt: skip  # fmt: skip


def test_layers_with_experts_have_keys_and_values_of_their_own():
    config = TestGemma4.configured("experts", **{"num_kv_shared_layers": 0}).to_dict()
    with pytest.raises(ConfigError, match="num_kv_shared_layers: must be 0 with enable_moe_block"):
        spec_of_config(Config({**config, "num_kv_shared_layers": 1}, "config.json"), name="tiny")


def test_a_config_with_experts_states_their_number():
    config = TestGemma4.configured("experts").to_dict()
    with pytest.raises(ConfigError, match="num_experts: is required"):
        spec_of_config(Config({**config, "num_experts": None}, "config.json"), name="tiny")
