"""The text models of Gemma 3n against transformers."""

from __future__ import annotations

import torch
from hypothesis import strategies as st
from transformers import Gemma3nForCausalLM, Gemma3nTextConfig, Gemma3nTextModel

from tests.parity.families.family import FamilyTests
from tests.parity.families.harness import check_reference
from tests.parity.families.llamas import LINEAR, SPECIAL, rotation
from tests.parity.reference import build

FULL, SLIDING = "full_attention", "sliding_attention"
CONFIGS = {
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


def check(model_class, config, directory, *, seed: int = 1, **options):
    """As the harness has it, with scores of ordinary size."""
    reference = build(model_class, config, seed)
    with torch.no_grad():
        for parameter in reference.parameters():
            if parameter.dim() > 1:
                parameter.mul_(0.5)
    return check_reference(reference, directory, seed=seed, **options)


class TestGemma3n(FamilyTests):
    model_class = Gemma3nForCausalLM
    configs = CONFIGS
    check = staticmethod(check)
    others = ((Gemma3nTextModel, {}),)
    refusals = (
        ("altup_active_idx", 1, "must be 0"),
        ("altup_correct_scale", False, "must be true"),
        ("activation_sparsity_pattern", [0.5, 0.8, 0.0, 0.0, 0.0], "must have one number besides 0"),
        ("activation_sparsity_pattern", [0.5], "must have a number for each of the 5 layers"),
        ("intermediate_size", [3, 4, 4, 4, 4], "must be the same whole number for every layer"),
    )
    drawn = {"length": 17}

    @staticmethod
    def config(**values) -> Gemma3nTextConfig:
        return Gemma3nTextConfig(**{**SPECIAL, **values})

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
            num_attention_heads=heads, num_key_value_heads=data.draw(st.sampled_from([1, heads]), "keys"),
            head_dim=data.draw(st.sampled_from([4, 8, 10]), "head"), max_position_embeddings=64,
            intermediate_size=data.draw(st.integers(8, 40), "hidden"), layer_types=[*own, *later],
            sliding_window=data.draw(st.integers(1, 12), "window"), num_kv_shared_layers=shared,
            altup_num_inputs=data.draw(st.integers(2, 4), "streams"), laurel_rank=data.draw(st.integers(1, 6), "rank"),
            hidden_size_per_layer_input=data.draw(st.sampled_from([4, 7]), "embedding per layer"),
            vocab_size_per_layer_input=data.draw(st.sampled_from([30, 47, 60]), "rows"), rms_norm_eps=1e-3,
            activation_sparsity_pattern=sparse,
            rope_parameters={FULL: rotation(500.0), SLIDING: rotation(70.0)},
        )  # fmt: skip
