"""BART and its kin against transformers."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
import transformers as hf

from tests.parity.families.draws import VOCAB
from tests.parity.families.family import RightPaddedTests
from tests.parity.families.seq2seq_tests import check_at_end, draw_bart, draw_final_bias
from tests.thinned import one_in

SPECIAL = dict(
    pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=2
)
CONFIGS = {
    "scaled": dict(
        vocab_size=61, d_model=21, max_position_embeddings=17, encoder_layers=2, encoder_ffn_dim=33,
        encoder_attention_heads=3, decoder_layers=3, decoder_ffn_dim=25, decoder_attention_heads=7,
        activation_function="gelu", scale_embedding=True, dropout=0.2, attention_dropout=0.3, activation_dropout=0.4,
    ),
    "relu": dict(
        vocab_size=50, d_model=32, max_position_embeddings=40, encoder_layers=3, encoder_ffn_dim=20,
        encoder_attention_heads=4, decoder_layers=1, decoder_ffn_dim=41, decoder_attention_heads=2,
        activation_function="relu", encoder_layerdrop=0.1, decoder_layerdrop=0.1, init_std=0.05,
    ),
    "one layer": dict(
        vocab_size=44, d_model=18, max_position_embeddings=13, encoder_layers=1, encoder_ffn_dim=9,
        encoder_attention_heads=1, decoder_layers=2, decoder_ffn_dim=7, decoder_attention_heads=3,
        activation_function="gelu_new", classifier_dropout=0.2,
    ),
}  # fmt: skip


class TestBart(RightPaddedTests):
    model_class = hf.BartForConditionalGeneration
    defaults = SPECIAL
    configs = CONFIGS
    heads: ClassVar[Any] = ("Model", "ForQuestionAnswering")
    of_others = ("scaled", "relu")
    refusals: ClassVar[Any] = (
        ("tie_word_embeddings", False, "must be true", "share one table"),
        ("activation_function", "gelu_neww", "is not supported", "gelu_new"),
        ("is_decoder", True, "must be false", "the decoder alone"),
        ("normalize_before", True, "must be false", "norms stand"),
        ("normalize_embedding", False, "must be true", "embedding"),
        ("add_final_layer_norm", True, "must be false", "stacks end"),
        ("static_position_embeddings", True, "must be false", "positions"),
        ("architectures", ["BartForCausalLM"], "must name a supported class", "BartForConditionalGeneration"),
    )
    prepare = staticmethod(draw_final_bias)

    @staticmethod
    def draw(data):
        return draw_bart(data) | {"vocab_size": VOCAB}


class TestMBart(TestBart):
    model_class = hf.MBartForConditionalGeneration
    refusals = ()


class TestPLBart(TestBart):
    model_class = hf.PLBartForConditionalGeneration
    heads = ("Model",)
    refusals = ()


class TestMvp(TestBart):
    model_class = hf.MvpForConditionalGeneration
    refusals = (("use_prompt", True, "must be false", "prompts inside attention"),)


class TestBlenderbot(TestBart):
    model_class = hf.BlenderbotForConditionalGeneration
    heads = ("Model",)
    refusals = ()


@one_in(6)
@pytest.mark.parametrize("labels", [{}, {"num_labels": 5}])
@pytest.mark.parametrize(
    "model_class", [getattr(hf, f"{name}ForSequenceClassification") for name in ("Bart", "MBart", "Mvp")]
)
def test_classification_at_the_end_of_sequence(model_class, labels, tmp_path):
    check_at_end(model_class, model_class.config_class(**CONFIGS["one layer"], **SPECIAL, **labels), tmp_path)
