"""BERT against transformers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertConfig, BertForMaskedLM

from tests.parity.families.encoders import classes, draw_bert, labels, sides
from tests.parity.families.harness import check
from tests.parity.families.refusals import refused
from tests.thinned import one_in

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


@one_in(3)
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tied, tmp_path):
    check(BertForMaskedLM, BertConfig(**CONFIGS[name], tie_word_embeddings=tied), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("model_class", classes("Bert"))
def test_other_heads(model_class, tmp_path):
    config = BertConfig(**CONFIGS["odd heads"], **labels(model_class))
    check(model_class, config, tmp_path, sides=sides(model_class))


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    config = BertConfig(**draw_bert(data))
    model_class = data.draw(st.sampled_from([BertForMaskedLM, *classes("Bert")]), "class")
    directory, seed = tmp_path_factory.mktemp("bert"), data.draw(st.integers(0, 99), "seed")
    where = sides(model_class)
    check(model_class, config, directory, seed=seed, sides=where, onnx=seed % 5 == 0, fuzzed=True)


REFUSED = {
    "type_vocab_size": (0, "must be 1 or more"),
    "position_embedding_type": ("relative_key", 'must be "absolute"'),
    "is_decoder": (True, "must be false"),
    "add_cross_attention": (True, "must be false"),
    "hidden_act": ("gelu_nwe", "did you mean 'gelu_new'"),
    "architectures": (["BertForPretraining"], "did you mean 'BertForPreTraining'"),
    "use_sparse_attention": (True, "not modelled"),
}


@pytest.mark.parametrize("field", REFUSED)
def test_refused(field):
    refused(BertConfig(**CONFIGS["odd heads"]), field, *REFUSED[field])
