"""RoBERTa and the models with its layers against transformers, which count real tokens themselves: by their ids."""

from __future__ import annotations

from typing import Any, ClassVar

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.encoder_tests import EncoderTests, draw_bert
from tests.parity.families.family import FamilyTests
from tests.parity.families.llamas import ALL
from tests.parity.reference import build
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


def test_weights_keep_their_family(tmp_path):
    reference = build(hf.XLMRobertaForMaskedLM, hf.XLMRobertaConfig(**CONFIGS["odd heads"]), seed=1)
    reference.save_pretrained(tmp_path / "reference")
    (tmp_path / "converted").mkdir()
    written = convert(
        import_spec(tmp_path / "reference"), str(tmp_path / "reference"), tmp_path / "converted"
    )
    assert (written.model_type, written.class_name) == ("xlm-roberta", "XLMRobertaForMaskedLM")


class TestRoberta(EncoderTests):
    model_class = hf.RobertaForMaskedLM
    configs = CONFIGS
    options = {"position_ids": False}
    refusals: ClassVar[Any] = (
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
        return fields | dict(pad_token_id=padding)


class TestXLMRoberta(TestRoberta):
    """A model with RoBERTa's layers, tried with one configuration, as are the next."""

    model_class = hf.XLMRobertaForMaskedLM
    configs = {"other padding": CONFIGS["other padding"]}
    heads = ALL
    refusals = ()
    draw = FamilyTests.draw


class TestCamembert(TestXLMRoberta):
    model_class = hf.CamembertForMaskedLM
    heads = ALL


class TestData2VecText(TestXLMRoberta):
    model_class = hf.Data2VecTextForMaskedLM
    heads = ALL


class TestRobertaPreLayerNorm(TestXLMRoberta):
    model_class = hf.RobertaPreLayerNormForMaskedLM
    heads = ALL


class TestXLMRobertaXL(TestXLMRoberta):
    model_class = hf.XLMRobertaXLForMaskedLM
    heads = ALL


class TestIBert(TestRoberta):
    model_class = hf.IBertForMaskedLM
    configs = {
        name: {**values, "hidden_act": "gelu"} for name, values in CONFIGS.items() if name != "other padding"
    }
    heads = ALL
    refusals: ClassVar[Any] = (("quant_mode", True, "arithmetic of integers"),)

    @staticmethod
    def draw(data):
        return TestRoberta.draw(data) | dict(hidden_act="gelu")
