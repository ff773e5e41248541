"""ESM Cambrian against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import ACTIVATION, FLAG, HIDDEN, LAYERS, VOCAB
from tests.parity.families.encoder_tests import EncoderTests
from tests.parity.families.llamas import LINEAR, YARN, rotation


class TestEsmc(EncoderTests):
    model_class = hf.EsmcForMaskedLM
    defaults = dict(pad_token_id=1)
    configs = {
        "odd heads": dict(
            vocab_size=21, hidden_size=36, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17,
            max_position_embeddings=64, rope_parameters=rotation(500.0),
        ),
        "biases": dict(
            vocab_size=33, hidden_size=28, num_hidden_layers=2, num_attention_heads=7, intermediate_size=50,
            max_position_embeddings=128, hidden_act="gelu", attention_bias=True, mlp_bias=True, rope_parameters=YARN,
        ),
    }  # fmt: skip
    heads = ("Model", "ForSequenceClassification", "ForTokenClassification")
    refusals = (
        ("hidden_act", "swiglu", "Did you mean 'silu'?"),
        ("tie_word_embeddings", True, "must be false"),
        ("layer_norm_eps", 1e-3, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        heads = data.draw(st.integers(1, 5), "heads")
        return dict(
            vocab_size=VOCAB, hidden_size=heads * 2 * data.draw(st.integers(2, 6), "pairs"), num_hidden_layers=LAYERS,
            num_attention_heads=heads, intermediate_size=HIDDEN, hidden_act=ACTIVATION, attention_bias=FLAG,
            mlp_bias=FLAG, max_position_embeddings=st.integers(32, 128),
            rope_parameters=st.sampled_from([rotation(50.0), LINEAR, YARN]),
        )  # fmt: skip
