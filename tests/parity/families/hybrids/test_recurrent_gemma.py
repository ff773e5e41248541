"""RecurrentGemma against transformers, with padding on the right alone: the reference's convolutions read padding before a text."""

from __future__ import annotations

import pytest
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, VOCAB, WINDOW
from tests.parity.families.mixers import MixerTests
from zoo.configs.exporting import NoFamilyError, write_config
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config


class TestRecurrentGemma(MixerTests):
    model_class = hf.RecurrentGemmaForCausalLM
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
    options = {"sides": ("right",)}
    heads = ("Model",)
    refusals = (
        ("hidden_activation", "silo", "Did you mean 'silu'?"),
        ("block_types", ["recurrent", "mamba"], "must be a list of recurrent and attention"),
        ("max_position_embeddings", 64, "unsupported fields"),
    )

    def test_has_no_context_length(self):
        spec = spec_of_config(Config(self.configured("windows").to_dict(), "config.json"), name="tiny")
        with pytest.raises(NoFamilyError, match="no field for\n  context_length 77"):
            write_config(spec.model_copy(update={"context_length": 77}), "recurrent_gemma")

    @staticmethod
    def draw(data):
        kv_heads, queries = data.draw(st.integers(1, 3), "kv_heads"), data.draw(st.integers(1, 3), "queries")
        return dict(
            vocab_size=VOCAB, hidden_size=4 * kv_heads * queries * data.draw(st.integers(1, 4), "pairs in a head"),
            num_hidden_layers=st.integers(1, 5), num_attention_heads=kv_heads * queries, num_key_value_heads=kv_heads,
            intermediate_size=2 * data.draw(st.integers(1, 40), "hidden"),
            lru_width=kv_heads * queries * data.draw(st.integers(1, 9), "width of a block"),
            attention_window_size=WINDOW, attention_bias=FLAG, conv1d_width=st.integers(2, 5),
            block_types=[ "attention", *data.draw(st.lists(st.sampled_from(["recurrent", "attention"]), max_size=2)), ],
            tie_word_embeddings=FLAG, rms_norm_eps=EPS,
        )  # fmt: skip
