"""The text models of Gemma 3n against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.family import FamilyTests, halve_matrices
from tests.parity.families.llamas import LINEAR, rotation

FULL, SLIDING = "full_attention", "sliding_attention"


class TestGemma3n(FamilyTests):
    model_class = hf.Gemma3nForCausalLM
    configs = {
        "four streams": dict(
            vocab_size=61, hidden_size=32, num_hidden_layers=5, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
            intermediate_size=21, rms_norm_eps=1e-3, max_position_embeddings=128, sliding_window=4,
            layer_types=[SLIDING, FULL, SLIDING, SLIDING, FULL], num_kv_shared_layers=2, laurel_rank=5,
            hidden_size_per_layer_input=6, vocab_size_per_layer_input=50,
            activation_sparsity_pattern=[0.8, 0.8, 0.0, 0.0, 0.0], final_logit_softcapping=2.5,
            rope_parameters={FULL: rotation(500.0), SLIDING: rotation(70.0)},
        ),
        "two streams": dict(
            vocab_size=47, hidden_size=30, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1, head_dim=10,
            intermediate_size=[17, 17], max_position_embeddings=64, sliding_window=3, layer_types=[SLIDING, FULL],
            num_kv_shared_layers=0, laurel_rank=3, altup_num_inputs=2, hidden_size_per_layer_input=5,
            vocab_size_per_layer_input=47, attention_bias=True, tie_word_embeddings=False, hidden_activation="silu",
            activation_sparsity_pattern=[0.0, 0.3], rope_parameters={FULL: LINEAR, SLIDING: rotation(70.0)},
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("altup_active_idx", 1, "must be 0"),
        ("altup_correct_scale", False, "must be true"),
        ("activation_sparsity_pattern", [0.5, 0.8, 0.0, 0.0, 0.0], "must have one number besides 0"),
        ("activation_sparsity_pattern", [0.5], "must have a number for each of the 5 layers"),
        ("intermediate_size", [3, 4, 4, 4, 4], "must be one whole number, or the same one for every layer"),
    )
    drawn = {"length": 17}
    prepare = staticmethod(halve_matrices)

    @staticmethod
    def draw(data):
        heads, depth = data.draw(st.sampled_from([1, 2, 4]), "heads"), data.draw(st.integers(2, 5), "layers")
        shared = data.draw(st.integers(0, depth - 2), "layers that reuse keys and values")
        own = data.draw(st.permutations([SLIDING, *[FULL] * (depth - shared - 1)]), "kinds")
        later = data.draw(
            st.lists(st.sampled_from([SLIDING, FULL]), min_size=shared, max_size=shared), "others"
        )
        sparse = data.draw(st.lists(st.sampled_from([0.0, 0.6]), min_size=depth, max_size=depth), "sparsity")
        return dict(
            vocab_size=47, hidden_size=4 * data.draw(st.integers(4, 10), "width"), num_hidden_layers=depth,
            num_attention_heads=heads, num_key_value_heads=st.sampled_from([1, heads]),
            head_dim=st.sampled_from([4, 8, 10]), max_position_embeddings=64, intermediate_size=st.integers(8, 40),
            layer_types=[*own, *later], sliding_window=st.integers(1, 12), num_kv_shared_layers=shared,
            altup_num_inputs=st.integers(2, 4), laurel_rank=st.integers(1, 6),
            hidden_size_per_layer_input=st.sampled_from([4, 7]),
            vocab_size_per_layer_input=st.sampled_from([30, 47, 60]), rms_norm_eps=1e-3,
            activation_sparsity_pattern=sparse, rope_parameters={FULL: rotation(500.0), SLIDING: rotation(70.0)},
        )  # fmt: skip  # fmt: skip
