"""OPT against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import ACTIVATION, FLAG, HIDDEN, LAYERS, VOCAB
from tests.parity.families.family import SPECIAL, FamilyTests
from tests.parity.families.refusals import refused


def test_a_projection_after_the_last_layer():
    config = TestOPT.configured("odd-heads")
    config.architectures = ["OPTModel"]
    refused(
        hf.OPTForCausalLM,
        config,
        "word_embed_proj_dim",
        12,
        "only in OPTForCausalLM\n  value: 12\n  Set architectures to OPTForCausalLM.",
    )


class TestOPT(FamilyTests):
    model_class = hf.OPTForCausalLM
    defaults = {**SPECIAL, "max_position_embeddings": 29}
    configs = {
        "odd-heads": dict(
            vocab_size=61, hidden_size=21, num_hidden_layers=3, num_attention_heads=3, ffn_dim=17,
            activation_function="gelu",
        ),
        "350m": dict(
            vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=70,
            word_embed_proj_dim=12, do_layer_norm_before=False,
        ),
        "no biases, no weights in norms": dict(
            vocab_size=83, hidden_size=20, num_hidden_layers=2, num_attention_heads=5, ffn_dim=33,
            enable_bias=False, layer_norm_elementwise_affine=False, tie_word_embeddings=False,
        ),
        "no final norm": dict(
            vocab_size=83, hidden_size=20, num_hidden_layers=2, num_attention_heads=5, ffn_dim=33,
            word_embed_proj_dim=25, _remove_final_layer_norm=True, tie_word_embeddings=False,
        ),
    }  # fmt: skip
    heads = ("Model", "ForSequenceClassification", "ForQuestionAnswering")
    refusals = (
        ("activation_function", "rellu", "Did you mean 'relu'"),
        ("num_key_value_heads", 1, "unsupported fields"),
        ("architectures", ["OPTForTokenClassification"], "must name a supported class"),
    )

    @staticmethod
    def draw(data):
        heads = data.draw(st.integers(1, 7), "heads")
        return dict(
            vocab_size=VOCAB, hidden_size=heads * data.draw(st.integers(3, 9), "head_dim"), num_hidden_layers=LAYERS,
            num_attention_heads=heads, ffn_dim=HIDDEN, word_embed_proj_dim=st.none() | st.integers(3, 40),
            activation_function=ACTIVATION, do_layer_norm_before=FLAG, _remove_final_layer_norm=FLAG,
            enable_bias=FLAG, layer_norm_elementwise_affine=FLAG, tie_word_embeddings=FLAG,
        )  # fmt: skip
