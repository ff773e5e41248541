"""BERT and the models with its layers against transformers."""

from __future__ import annotations

from typing import Any

import torch
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.encoder_tests import EncoderTests, draw_bert
from tests.parity.families.harness import check_reference
from tests.parity.reference import build

CONFIGS = {
    "odd heads": dict(
        vocab_size=61, hidden_size=21, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17,
        hidden_act="gelu_new", layer_norm_eps=1e-3, type_vocab_size=3, max_position_embeddings=23,
    ),
    "one layer": dict(
        vocab_size=33, hidden_size=40, num_hidden_layers=1, num_attention_heads=5, intermediate_size=96,
        hidden_act="relu", layer_norm_eps=1e-6, type_vocab_size=1, max_position_embeddings=19,
    ),
    "exact gelu": dict(
        vocab_size=97, hidden_size=28, num_hidden_layers=2, num_attention_heads=7, intermediate_size=50,
        hidden_act="gelu", layer_norm_eps=1e-12, type_vocab_size=2, max_position_embeddings=31,
    ),
}  # fmt: skip


class TestBert(EncoderTests):
    model_class = hf.BertForMaskedLM
    configs = {
        f"{name}, {'tied' if tied else 'untied'}": {**values, "tie_word_embeddings": tied}
        for name, values in CONFIGS.items()
        for tied in (True, False)
    }
    refusals = (
        ("type_vocab_size", 0, "must be 1 or more"),
        ("position_embedding_type", "relative_key", 'must be "absolute"'),
        ("is_decoder", True, "must be false"),
        ("add_cross_attention", True, "must be false"),
        ("hidden_act", "gelu_nwe", "Did you mean 'gelu_new'"),
        ("architectures", ["BertForPretraining"], "Did you mean 'BertForPreTraining'"),
        ("use_sparse_attention", True, "unsupported fields"),
    )
    draw = staticmethod(draw_bert)


class TestSplinter(EncoderTests):
    model_class = hf.SplinterModel
    configs = {"odd heads": CONFIGS["odd heads"]}
    heads = ()
    refusals = (
        ("architectures", ["SplinterForQuestionAnswering"], "a token that stands for each answer"),
        ("hidden_act", "gelu_nwe", "Did you mean 'gelu_new'"),
    )

    @staticmethod
    def draw(data):
        fields = draw_bert(data)
        del fields["tie_word_embeddings"]
        return fields


class TestBertGeneration(EncoderTests):
    model_class = hf.BertGenerationEncoder
    configs = {
        "odd heads": {
            name: value for name, value in CONFIGS["odd heads"].items() if name != "type_vocab_size"
        }
    }
    heads = ()
    refusals = (
        ("architectures", ["BertGenerationDecoder"], "BERT's layers as a decoder"),
        ("is_decoder", True, "must be false"),
    )

    @staticmethod
    def draw(data):
        fields = draw_bert(data)
        del fields["type_vocab_size"]
        return fields


def angles_as_published(reference: Any, seed: int) -> None:
    """The table of rotations, which is no weight, as the reference makes it."""
    positions = reference.base_model.encoder.embed_positions
    with torch.no_grad():
        positions.weight.copy_(positions.create_weight())


class TestRoFormer(EncoderTests):
    model_class = hf.RoFormerForMaskedLM
    prepare = staticmethod(angles_as_published)
    configs = {
        "narrow table": {**CONFIGS["one layer"], "embedding_size": 12, "hidden_act": "gelu"},
        "untied": {**CONFIGS["exact gelu"], "tie_word_embeddings": False},
    }
    refusals = (
        ("rotary_value", True, "rotations of the values are not supported"),
        ("architectures", ["RoFormerForCausalLM"], "Choose from: "),
    )

    @staticmethod
    def draw(data):
        heads = data.draw(st.integers(1, 7), "heads")
        width = heads * 2 * data.draw(st.integers(2, 5), "pairs")
        narrow = st.sampled_from([width, 9])
        return draw_bert(data) | dict(
            num_attention_heads=heads, hidden_size=width, embedding_size=narrow,
            max_position_embeddings=st.integers(16, 40),
        )  # fmt: skip


class TestRemBert(EncoderTests):
    model_class = hf.RemBertForMaskedLM
    configs = {
        "wider scores": {**CONFIGS["odd heads"], "input_embedding_size": 11, "output_embedding_size": 34},
        "equal widths": {**CONFIGS["one layer"], "input_embedding_size": 40, "output_embedding_size": 40},
    }
    refusals = (("tie_word_embeddings", True, "a table of their own"),)

    @staticmethod
    def draw(data):
        widths = dict.fromkeys(("input_embedding_size", "output_embedding_size"), st.integers(1, 40))
        return draw_bert(data) | {**widths, "tie_word_embeddings": False}


class TestDPR(EncoderTests):
    model_class = hf.DPRContextEncoder
    configs = {"odd heads": CONFIGS["odd heads"]}
    heads = ()
    others = ((hf.DPRReader, {"type_vocab_size": 1}),)  # it takes no token_type_ids
    options = {"sides": ("right",)}
    refusals = (("projection_dim", 8, "a projection with a bias"),)

    @staticmethod
    def draw(data):
        fields = draw_bert(data)
        del fields["tie_word_embeddings"]
        return fields | dict(type_vocab_size=1)


def test_the_vector_of_a_question_has_a_name_of_its_own(tmp_path):
    reference = build(hf.DPRQuestionEncoder, TestDPR.configured(), seed=1)
    spec = check_reference(reference, tmp_path, sides=("right",))
    assert spec.head.vector_output == "query_embedding"
