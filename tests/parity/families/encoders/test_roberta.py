"""RoBERTa and the models with its layers against transformers, which count real tokens themselves: by their ids."""

from __future__ import annotations

import pytest
import transformers
from hypothesis import strategies as st
from transformers import (
    CamembertConfig,
    Data2VecTextConfig,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaPreLayerNormConfig,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
)

from tests.parity.families.encoder_tests import EncoderTests, check_encoder, classes, draw_bert, labels
from tests.parity.reference import build
from tests.thinned import one_in
from zoo.checkpoints.converting import convert
from zoo.configs.importing import import_spec

CONFIGS = {
    "odd heads": dict(
        vocab_size=61, hidden_size=21, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17,
        hidden_act="gelu_new", layer_norm_eps=1e-3, type_vocab_size=1, max_position_embeddings=23,
    ),
    "other padding": dict(
        vocab_size=33, hidden_size=40, num_hidden_layers=1, num_attention_heads=5, intermediate_size=96,
        hidden_act="relu", layer_norm_eps=1e-6, type_vocab_size=3, max_position_embeddings=19, pad_token_id=4,
    ),
    "untied": dict(
        vocab_size=97, hidden_size=28, num_hidden_layers=2, num_attention_heads=7, intermediate_size=50,
        hidden_act="gelu", layer_norm_eps=1e-12, type_vocab_size=2, max_position_embeddings=31, pad_token_id=0,
        tie_word_embeddings=False,
    ),
}  # fmt: skip


HEADS = ("ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")


def check_roberta(model_class, config, directory, **options):
    return check_encoder(model_class, config, directory, position_ids=False, **options)


ALIKE = {
    "XLMRoberta": XLMRobertaConfig,
    "Camembert": CamembertConfig,
    "Data2VecText": Data2VecTextConfig,
    "RobertaPreLayerNorm": RobertaPreLayerNormConfig,
}


@one_in(3)
@pytest.mark.parametrize("head", ["Model", *HEADS])
@pytest.mark.parametrize("prefix", ALIKE)
def test_models_with_the_same_layers(prefix, head, tmp_path):
    model_class = getattr(transformers, f"{prefix}{head}")
    check_roberta(model_class, ALIKE[prefix](**CONFIGS["other padding"], **labels(model_class)), tmp_path)


def test_weights_keep_their_family(tmp_path):
    reference = build(XLMRobertaForMaskedLM, XLMRobertaConfig(**CONFIGS["odd heads"]), seed=1)
    reference.save_pretrained(tmp_path / "reference")
    (tmp_path / "converted").mkdir()
    written = convert(
        import_spec(tmp_path / "reference"), str(tmp_path / "reference"), tmp_path / "converted"
    )
    assert (written.model_type, written.class_name) == ("xlm-roberta", "XLMRobertaForMaskedLM")


class TestRoberta(EncoderTests):
    model_class = RobertaForMaskedLM
    config = RobertaConfig
    configs = CONFIGS
    check = staticmethod(check_roberta)
    others = [(each, labels(each)) for each in classes("Roberta")]
    refusals = (
        ("position_embedding_type", "relative_key_query", 'must be "absolute"'),
        ("is_decoder", True, "must be false"),
        ("hidden_act", "gelu_nwe", "Did you mean 'gelu_new'"),
        ("max_position_embeddings", 2, "must exceed 2, where positions start"),
        ("architectures", ["RobertaForCausalLM"], "Choose from: "),
    )

    @staticmethod
    def draw(data):
        fields, padding = draw_bert(data), data.draw(st.integers(0, 4), "padding")
        fields["max_position_embeddings"] += padding + 1
        return {**fields, "pad_token_id": padding}
