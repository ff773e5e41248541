"""BART and its kin against transformers."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
import transformers as hf

from tests.parity.families.draws import VOCAB
from tests.parity.families.family import RightPaddedTests
from tests.parity.families.seq2seq_tests import SMALL, check_at_end, draw_bart, draw_final_bias
from tests.thinned import one_in

SPECIAL = dict(
    pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=2
)
CONFIGS = {
    **SMALL,
    "one layer": dict(SMALL["one layer"], activation_function="gelu_new", classifier_dropout=0.2),
}


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
