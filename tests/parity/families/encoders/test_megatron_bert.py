"""Megatron-BERT, ERNIE and LayoutLM against transformers."""

from __future__ import annotations

from typing import Any, ClassVar

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import FLAG
from tests.parity.families.encoder_tests import EncoderTests, draw_bert
from tests.parity.families.llamas import ALL

CONFIGS = {
    "odd heads": dict(
        vocab_size=61, hidden_size=21, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17,
        hidden_act="gelu_new", layer_norm_eps=1e-3, type_vocab_size=1, max_position_embeddings=23,
    ),
    "untied": dict(
        vocab_size=97, hidden_size=28, num_hidden_layers=2, num_attention_heads=7, intermediate_size=50,
        hidden_act="relu", layer_norm_eps=1e-12, type_vocab_size=2, max_position_embeddings=31,
        tie_word_embeddings=False,
    ),
}  # fmt: skip


class TestMegatronBert(EncoderTests):
    model_class = hf.MegatronBertForMaskedLM
    configs = CONFIGS
    heads = ALL
    refusals: ClassVar[Any] = (
        ("hidden_act", "gelu_nwe", "Did you mean 'gelu_new'"),
        ("is_decoder", True, "must be false"),
    )

    @staticmethod
    def draw(data):
        return draw_bert(data)


class TestErnie(TestMegatronBert):
    model_class = hf.ErnieForMaskedLM
    configs: ClassVar[Any] = {
        "tasks": {**CONFIGS["odd heads"], "use_task_id": True, "task_type_vocab_size": 4},
        "untied": CONFIGS["untied"],
    }
    heads = ALL
    refusals = ()

    @staticmethod
    def draw(data):
        return draw_bert(data) | dict(use_task_id=FLAG, task_type_vocab_size=st.integers(1, 5))


class TestBros(EncoderTests):
    model_class = hf.BrosModel
    configs: ClassVar[Any] = {
        "one head": {**CONFIGS["odd heads"], "hidden_size": 64, "num_attention_heads": 1, "bbox_scale": 10.0},
        "heads": {**CONFIGS["untied"], "hidden_size": 128, "num_attention_heads": 8},
    }
    heads = ("ForTokenClassification",)
    refusals: ClassVar[Any] = (
        ("dim_bbox", 4, "must be 8"),
        ({"hidden_size": 72, "num_attention_heads": 2}, "requires a d_model that 64 divides, and it is 72"),
        ({"architectures": ["BrosSpadeELForTokenClassification"]}, "scores of pairs of tokens"),
    )

    @staticmethod
    def draw(data):
        heads = data.draw(st.sampled_from([1, 2, 4, 8]), "heads")
        width = 64 * data.draw(st.integers(1, 3), "width")
        scale = st.sampled_from([1.0, 10.0, 100.0])
        return draw_bert(data) | dict(hidden_size=width, num_attention_heads=heads, bbox_scale=scale)


class TestLayoutLM(TestMegatronBert):
    model_class = hf.LayoutLMForMaskedLM
    configs: ClassVar[Any] = {
        name: {**values, "max_2d_position_embeddings": 30} for name, values in CONFIGS.items()
    }
    heads = ALL
    refusals: ClassVar[Any] = (("max_2d_position_embeddings", 0, "must be 1 or more"),)

    @staticmethod
    def draw(data):
        return draw_bert(data) | dict(max_2d_position_embeddings=st.integers(1, 40))
