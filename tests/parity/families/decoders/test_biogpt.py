"""BioGPT against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import ACTIVATION, FLAG, HIDDEN, LAYERS, VOCAB
from tests.parity.families.family import FamilyTests


class TestBioGpt(FamilyTests):
    model_class = hf.BioGptForCausalLM
    configs = {
        "scaled": dict(
            vocab_size=61, hidden_size=30, num_hidden_layers=3, num_attention_heads=5, intermediate_size=41,
            max_position_embeddings=40,
        ),
        "untied": dict(
            vocab_size=47, hidden_size=28, num_hidden_layers=2, num_attention_heads=7, intermediate_size=20,
            hidden_act="relu", scale_embedding=False, tie_word_embeddings=False, max_position_embeddings=64,
        ),
    }  # fmt: skip
    heads = ("Model", "ForSequenceClassification")
    refusals = (("hidden_act", "gelu_nwe", "Did you mean 'gelu_new'"),)
    draws = dict(
        vocab_size=VOCAB, hidden_size=24, num_attention_heads=st.sampled_from([1, 2, 4]), num_hidden_layers=LAYERS,
        intermediate_size=HIDDEN, hidden_act=ACTIVATION, scale_embedding=FLAG, tie_word_embeddings=FLAG,
        max_position_embeddings=st.integers(32, 64),
    )  # fmt: skip
