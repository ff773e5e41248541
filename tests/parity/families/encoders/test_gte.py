"""GTE against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.encoder_tests import ROTARY, EncoderTests, draw_rotary


class TestGte(EncoderTests):
    model_class = hf.GteForMaskedLM
    configs = {
        "odd heads": ROTARY["odd heads"],
        "no token types": dict(ROTARY["one layer"], hidden_act="silu", type_vocab_size=0),
        "untied": ROTARY["untied"],
    }
    heads = ("Model", "ForSequenceClassification", "ForTokenClassification")
    refusals = (
        ("position_embedding_type", "absolute", 'must be "rope"'),
        ("logn_attention_scale", True, "must be false"),
        ("hidden_act", "gelu_nwe", "Did you mean 'gelu_new'"),
        ("rope_parameters", {"rope_type": "ntk", "factor": 2.0}, "is not supported"),
        ("architectures", ["GteForMaskedLm"], "Did you mean 'GteForMaskedLM'"),
        ("head_dim", 3, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        return draw_rotary(data, token_types=st.integers(0, 3))
