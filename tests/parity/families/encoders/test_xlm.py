"""XLM and FlauBERT against transformers."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import FLAG, LAYERS, VOCAB
from tests.parity.families.encoder_tests import EPS, EncoderTests


class TestXLM(EncoderTests):
    model_class = hf.XLMWithLMHeadModel
    defaults = {"pad_token_id": 2, "bos_token_id": 0, "eos_token_id": 1}
    configs = {
        "odd heads": dict(
            vocab_size=61, emb_dim=21, n_layers=3, n_heads=3, gelu_activation=True, layer_norm_eps=1e-3,
            max_position_embeddings=23, dropout=0.3, attention_dropout=0.2,
        ),
        "untied": dict(
            vocab_size=33, emb_dim=40, n_layers=1, n_heads=5, gelu_activation=False, max_position_embeddings=19,
            sinusoidal_embeddings=True, tie_word_embeddings=False, n_langs=4, use_lang_emb=False,
        ),
    }  # fmt: skip
    heads = ("Model", "ForSequenceClassification", "ForTokenClassification")
    others: ClassVar = ((hf.XLMForQuestionAnsweringSimple, {"num_labels": 2}),)
    refusals: ClassVar[Any] = (
        ({"n_langs": 2}, "embeddings of languages are not supported"),
        ("causal", True, "the model is an encoder"),
        ("summary_type", "last", "the first token"),
        ("architectures", ["XLMForQuestionAnswering"], "a search for the end of an answer"),
    )

    @staticmethod
    def draw(data):
        heads = data.draw(st.integers(1, 7), "heads")
        return dict(
            vocab_size=VOCAB, emb_dim=heads * data.draw(st.integers(3, 9), "head_dim"), n_layers=LAYERS, n_heads=heads,
            gelu_activation=FLAG, layer_norm_eps=EPS, max_position_embeddings=st.integers(1, 40),
            tie_word_embeddings=FLAG,
        )  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _subscripts_of_a_cache():
    """Norms before the branches work in the reference: it takes a cache of layers for a list of caches there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hf.EncoderDecoderCache, "__getitem__", lambda cache, layer: cache, raising=False)
        yield


class TestFlaubert(TestXLM):
    model_class = hf.FlaubertWithLMHeadModel
    heads = ("Model", "ForSequenceClassification", "ForTokenClassification")
    others = ((hf.FlaubertForQuestionAnsweringSimple, {"num_labels": 2}),)
    refusals = (("asm", True, "adaptive softmax"),)

    @staticmethod
    def draw(data):
        return TestXLM.draw(data) | dict(pre_norm=FLAG)
