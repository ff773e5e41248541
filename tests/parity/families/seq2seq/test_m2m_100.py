"""M2M100 against transformers, which counts real tokens by their ids."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import ACTIVATION, FLAG
from tests.parity.families.family import FamilyTests
from tests.parity.families.harness import check


class TestM2M100(FamilyTests):
    model_class = hf.M2M100ForConditionalGeneration
    configs = {
        "scaled": dict(
            vocab_size=61, d_model=24, max_position_embeddings=17, encoder_layers=2, encoder_ffn_dim=33,
            encoder_attention_heads=3, decoder_layers=3, decoder_ffn_dim=25, decoder_attention_heads=4,
            activation_function="gelu", attention_dropout=0.3, activation_dropout=0.4,
        ),
        "another padding token": dict(
            vocab_size=50, d_model=32, max_position_embeddings=40, encoder_layers=3, encoder_ffn_dim=20,
            encoder_attention_heads=4, decoder_layers=1, decoder_ffn_dim=41, decoder_attention_heads=2,
            scale_embedding=False, init_std=0.05, pad_token_id=4,
        ),
        "one head": dict(
            vocab_size=44, d_model=18, max_position_embeddings=13, encoder_layers=1, encoder_ffn_dim=9,
            encoder_attention_heads=1, decoder_layers=2, decoder_ffn_dim=7, decoder_attention_heads=3,
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("activation_function", "rellu", "Did you mean 'relu'"),
        ("tie_word_embeddings", False, "must be true"),
        ("normalize_before", False, "must be true"),
        ("sliding_window", 3, "unsupported fields"),
        ("architectures", ["M2M100ForCausalLM"], "must name a supported class"),
    )

    @staticmethod
    def draw(data):
        encoder_heads, decoder_heads = data.draw(st.sampled_from([(1, 3), (2, 1), (2, 2), (3, 6)]), "heads")
        return dict(
            vocab_size=st.integers(9, 90), d_model=12 * data.draw(st.integers(1, 4), "d_model over 12"),
            max_position_embeddings=st.integers(4, 40), encoder_layers=st.integers(1, 3),
            decoder_layers=st.integers(1, 3), encoder_attention_heads=encoder_heads,
            decoder_attention_heads=decoder_heads, encoder_ffn_dim=st.integers(1, 50),
            decoder_ffn_dim=st.integers(1, 50), activation_function=ACTIVATION, scale_embedding=FLAG,
            pad_token_id=st.integers(0, 5),
        )  # fmt: skip


def test_more_tokens_than_positions_were_planned_for(tmp_path):
    config = hf.M2M100Config(
        **{**TestM2M100.configs["scaled"], "max_position_embeddings": 4, "vocab_size": 40}
    )
    assert check(hf.M2M100Model, config, tmp_path, onnx=False).context_length == 4
