"""RoBERTa and XLM-RoBERTa against transformers, which count real tokens themselves: by their ids."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import RobertaConfig, RobertaForMaskedLM, XLMRobertaConfig, XLMRobertaForMaskedLM

from tests.parity.families.encoders import classes, draw_bert, labels, sides
from tests.parity.families.harness import check
from tests.parity.families.refusals import refused
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


@one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    check(RobertaForMaskedLM, RobertaConfig(**CONFIGS[name]), tmp_path, position_ids=False)


@pytest.mark.slow
@pytest.mark.parametrize("model_class", classes("Roberta"))
def test_other_heads(model_class, tmp_path):
    config = RobertaConfig(**CONFIGS["odd heads"], **labels(model_class))
    check(model_class, config, tmp_path, sides=sides(model_class), position_ids=False)


@pytest.mark.parametrize("model_class", [XLMRobertaForMaskedLM, *classes("XLMRoberta")])
def test_xlm_roberta(model_class, tmp_path):
    config = XLMRobertaConfig(**CONFIGS["other padding"], **labels(model_class))
    check(model_class, config, tmp_path, sides=sides(model_class), position_ids=False)


def test_weights_keep_their_family(tmp_path):
    reference = build(XLMRobertaForMaskedLM, XLMRobertaConfig(**CONFIGS["odd heads"]), seed=1)
    reference.save_pretrained(tmp_path / "reference")
    (tmp_path / "converted").mkdir()
    written = convert(
        import_spec(tmp_path / "reference"), str(tmp_path / "reference"), tmp_path / "converted"
    )
    assert (written.model_type, written.class_name) == ("xlm-roberta", "XLMRobertaForMaskedLM")


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    fields, padding = draw_bert(data), data.draw(st.integers(0, 4), "padding")
    fields["max_position_embeddings"] += padding + 1
    config = RobertaConfig(**fields, pad_token_id=padding)
    model_class = data.draw(st.sampled_from([RobertaForMaskedLM, *classes("Roberta")]), "class")
    directory, seed = tmp_path_factory.mktemp("roberta"), data.draw(st.integers(0, 99), "seed")
    options = {"sides": sides(model_class), "position_ids": False}
    check(model_class, config, directory, seed=seed, onnx=seed % 5 == 0, fuzzed=True, **options)


REFUSED = {
    "position_embedding_type": ("relative_key_query", 'must be "absolute"'),
    "is_decoder": (True, "must be false"),
    "hidden_act": ("gelu_nwe", "did you mean 'gelu_new'"),
    "max_position_embeddings": (2, "must exceed 2, where positions start: pad_token_id + 1"),
    "architectures": (["RobertaForCausalLM"], "did you mean"),
}


@pytest.mark.parametrize("field", REFUSED)
def test_refused(field):
    refused(RobertaConfig(**CONFIGS["odd heads"]), field, *REFUSED[field])
