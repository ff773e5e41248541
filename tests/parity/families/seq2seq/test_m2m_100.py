"""M2M100 against transformers, which counts real tokens by their ids."""

from __future__ import annotations

from hypothesis import strategies as st
from transformers import M2M100Config, M2M100ForConditionalGeneration, M2M100Model

from tests.parity.families.family import FamilyTests
from tests.parity.families.harness import check


class TestM2M100(FamilyTests):
    model_class = M2M100ForConditionalGeneration
    config = M2M100Config
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
    others = ((M2M100Model, {}),)
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
            vocab_size=data.draw(st.integers(9, 90), "vocab_size"),
            d_model=12 * data.draw(st.integers(1, 4), "d_model over 12"),
            max_position_embeddings=data.draw(st.integers(4, 40), "context"),
            encoder_layers=data.draw(st.integers(1, 3), "encoder_layers"),
            decoder_layers=data.draw(st.integers(1, 3), "decoder_layers"),
            encoder_attention_heads=encoder_heads,
            decoder_attention_heads=decoder_heads,
            encoder_ffn_dim=data.draw(st.integers(1, 50), "encoder_ffn_dim"),
            decoder_ffn_dim=data.draw(st.integers(1, 50), "decoder_ffn_dim"),
            activation_function=data.draw(
                st.sampled_from(["gelu", "gelu_new", "relu", "silu"]), "activation"
            ),
            scale_embedding=data.draw(st.booleans(), "scale_embedding"),
            pad_token_id=data.draw(st.integers(0, 5), "padding token"),
        )


def test_more_tokens_than_positions_were_planned_for(tmp_path):
    config = M2M100Config(**{**TestM2M100.configs["scaled"], "max_position_embeddings": 4, "vocab_size": 40})
    assert check(M2M100Model, config, tmp_path, onnx=False).context_length == 4
