"""RecurrentGemma against transformers, with padding on the right alone: the reference's convolutions read padding before a text."""

from __future__ import annotations

from functools import partial

from hypothesis import strategies as st
from transformers import RecurrentGemmaConfig, RecurrentGemmaForCausalLM, RecurrentGemmaModel

from tests.parity.families.llamas import EPS, SPECIAL
from tests.parity.families.mixers import MixerTests, check


class TestRecurrentGemma(MixerTests):
    model_class = RecurrentGemmaForCausalLM
    configs = {
        "windows": dict(
            vocab_size=61, hidden_size=48, num_hidden_layers=5, num_attention_heads=6, num_key_value_heads=2,
            intermediate_size=42, attention_window_size=5, rms_norm_eps=1e-3, lru_width=36,
        ),
        "attention first": dict(
            vocab_size=47, hidden_size=40, num_hidden_layers=3, num_attention_heads=5, num_key_value_heads=1,
            intermediate_size=50, attention_window_size=16, attention_bias=True, conv1d_width=3,
            block_types=["attention", "recurrent"], hidden_activation="silu", logits_soft_cap=5.0,
            tie_word_embeddings=False,
        ),
    }  # fmt: skip
    check = staticmethod(partial(check, sides=("right",)))
    others = [(RecurrentGemmaModel, {})]
    refusals = (
        ("hidden_activation", "silo", "Did you mean 'silu'?"),
        ("block_types", ["recurrent", "mamba"], "must be a list of recurrent and attention"),
        ("max_position_embeddings", 64, "unsupported fields"),
    )

    @staticmethod
    def config(**values) -> RecurrentGemmaConfig:
        return RecurrentGemmaConfig(**{**SPECIAL, **values})

    @staticmethod
    def draw(data):
        kv_heads, queries = data.draw(st.integers(1, 3), "kv_heads"), data.draw(st.integers(1, 3), "queries")
        return dict(
            vocab_size=data.draw(st.integers(5, 90), "vocab_size"),
            hidden_size=4 * kv_heads * queries * data.draw(st.integers(1, 4), "pairs in a head"),
            num_hidden_layers=data.draw(st.integers(1, 5), "layers"),
            num_attention_heads=kv_heads * queries,
            num_key_value_heads=kv_heads,
            intermediate_size=2 * data.draw(st.integers(1, 40), "hidden"),
            lru_width=kv_heads * queries * data.draw(st.integers(1, 9), "width of a block"),
            attention_window_size=data.draw(st.integers(2, 15), "window"),
            attention_bias=data.draw(st.booleans(), "attention_bias"),
            conv1d_width=data.draw(st.integers(2, 5), "kernel"),
            block_types=[
                "attention",
                *data.draw(st.lists(st.sampled_from(["recurrent", "attention"]), max_size=2)),
            ],
            tie_word_embeddings=data.draw(st.booleans(), "tied"),
            rms_norm_eps=data.draw(EPS, "eps"),
        )
