"""ALBERT against transformers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AlbertConfig, AlbertForMaskedLM

from tests.parity.families.encoders import classes, draw_bert, labels, sides
from tests.parity.families.harness import check
from tests.parity.families.refusals import refused
from tests.thinned import one_in

CONFIGS = {
    "one layer for all": dict(
        vocab_size=61, embedding_size=11, hidden_size=21, num_hidden_layers=3, num_attention_heads=3,
        intermediate_size=17, hidden_act="gelu_new", layer_norm_eps=1e-3, type_vocab_size=3,
        max_position_embeddings=23,
    ),
    "groups of unequal length": dict(
        vocab_size=33, embedding_size=12, hidden_size=40, num_hidden_layers=5, num_hidden_groups=2,
        inner_group_num=3, num_attention_heads=5, intermediate_size=96, hidden_act="relu", layer_norm_eps=1e-6,
        type_vocab_size=1, max_position_embeddings=19,
    ),
    "all its own, as wide as its embedding": dict(
        vocab_size=97, embedding_size=28, hidden_size=28, num_hidden_layers=3, num_hidden_groups=3,
        num_attention_heads=7, intermediate_size=50, hidden_act="silu", layer_norm_eps=1e-12, type_vocab_size=2,
        max_position_embeddings=31, tie_word_embeddings=False,
    ),
}  # fmt: skip


@one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    check(AlbertForMaskedLM, AlbertConfig(**CONFIGS[name]), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("model_class", classes("Albert"))
def test_other_heads(model_class, tmp_path):
    config = AlbertConfig(**CONFIGS["groups of unequal length"], **labels(model_class))
    check(model_class, config, tmp_path, sides=sides(model_class))


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    fields = draw_bert(data)
    fields["num_hidden_groups"] = data.draw(st.integers(1, fields["num_hidden_layers"]), "groups")
    fields["inner_group_num"] = data.draw(st.integers(1, 2), "inner")
    config = AlbertConfig(**fields, embedding_size=data.draw(st.integers(8, 30), "width"))
    model_class = data.draw(st.sampled_from([AlbertForMaskedLM, *classes("Albert")]), "class")
    directory, seed = tmp_path_factory.mktemp("albert"), data.draw(st.integers(0, 99), "seed")
    where = sides(model_class)
    check(model_class, config, directory, seed=seed, sides=where, onnx=seed % 5 == 0, fuzzed=True)


REFUSED = {
    "position_embedding_type": ("relative_key", 'must be "absolute"'),
    "hidden_act": ("gelu_nwe", "did you mean 'gelu_new'"),
    "num_hidden_groups": (4, "must be from 1 to num_hidden_layers, which is 3"),
    "inner_group_num": (0, "must be 1 or more"),
    "architectures": (["AlbertForMultipleChoice"], "has no class that is modelled"),
}


@pytest.mark.parametrize("field", REFUSED)
def test_refused(field):
    refused(AlbertConfig(**CONFIGS["one layer for all"]), field, *REFUSED[field])
