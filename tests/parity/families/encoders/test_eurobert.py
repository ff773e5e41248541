"""EuroBERT against transformers."""

from __future__ import annotations

import pytest
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import FLAG
from tests.parity.families.encoder_tests import EncoderTests
from tests.parity.families.family import SPECIAL
from tests.parity.families.llamas import LINEAR, YARN, draw_llama, rotation
from tests.parity.families.sizes import GROUPED, MULTI_QUERY
from zoo.configs.exporting import NoFamilyError, write_config
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config


@pytest.mark.slow
@pytest.mark.parametrize("pooling", ["bos", "mean"])
def test_other_poolings(pooling, tmp_path):
    config = TestEuroBert.configured("grouped", classifier_pooling=pooling, num_labels=3)
    TestEuroBert().check(hf.EuroBertForSequenceClassification, config, tmp_path)


def test_a_pooling_that_it_has_not_is_refused():
    config = TestEuroBert.configured("grouped", architectures=["EuroBertForSequenceClassification"]).to_dict()
    spec = spec_of_config(Config(config, "config.json"), name="tiny")
    changed = spec.model_copy(update={"head": spec.head.model_copy(update={"pooling": "max"})})
    with pytest.raises(NoFamilyError, match=r"head\.pooling: 'max' \(it has 'first'\)"):
        write_config(changed, "eurobert")


class TestEuroBert(EncoderTests):
    model_class = hf.EuroBertForMaskedLM
    defaults = SPECIAL
    configs = {
        "grouped": dict(
            GROUPED, hidden_size=36, rms_norm_eps=1e-3, max_position_embeddings=128, attention_bias=True,
            mlp_bias=True, rope_parameters=rotation(500.0),
        ),
        "other head width": dict(
            vocab_size=47, hidden_size=40, num_hidden_layers=2, num_attention_heads=5, head_dim=6, intermediate_size=50,
            max_position_embeddings=128, hidden_act="gelu_new", rope_parameters=YARN,
        ),
        "tied": dict(
            MULTI_QUERY, num_hidden_layers=2, max_position_embeddings=128, tie_word_embeddings=True,
            rope_parameters=LINEAR,
        ),
    }  # fmt: skip
    heads = ("Model", "ForSequenceClassification", "ForTokenClassification")
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'"),
        ("rope_parameters", {"rope_type": "yran"}, "Did you mean 'yarn'"),
        ("architectures", ["EuroBertForMaskedLm"], "Did you mean 'EuroBertForMaskedLM'"),
        ("sliding_window", 3, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        return draw_llama(data) | dict(
            head_dim=st.sampled_from([None, 4, 6]), rms_norm_eps=st.sampled_from([1e-6, 1e-5, 1e-2]),
            attention_bias=FLAG, mlp_bias=FLAG, classifier_pooling=st.sampled_from(["late", "mean", "bos"]),
        )  # fmt: skip
