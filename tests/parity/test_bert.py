"""BERT against transformers."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, BertModel

from tests.parity.reference import assert_close, bert_mlm_head, bert_spec, build, ragged, through_checkpoint

CONFIGS = {
    "odd-heads": dict(
        vocab_size=61, hidden_size=21, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17,
        hidden_act="gelu_new", layer_norm_eps=1e-3, type_vocab_size=3, max_position_embeddings=23,
    ),
    "one-layer": dict(
        vocab_size=33, hidden_size=40, num_hidden_layers=1, num_attention_heads=5, intermediate_size=96,
        hidden_act="relu", layer_norm_eps=1e-6, type_vocab_size=1, max_position_embeddings=19,
    ),
    "exact-gelu": dict(
        vocab_size=97, hidden_size=28, num_hidden_layers=2, num_attention_heads=7, intermediate_size=50,
        hidden_act="gelu", layer_norm_eps=1e-12, type_vocab_size=2, max_position_embeddings=31,
    ),
}  # fmt: skip


def inputs(config: BertConfig, side: str = "right"):
    ids, mask = ragged(3, min(13, config.max_position_embeddings), config.vocab_size, side, seed=5)
    types = torch.randint(0, config.type_vocab_size, ids.shape, generator=torch.Generator().manual_seed(6))
    return ids, mask, types


def check_body(config: BertConfig, directory, seed: int) -> None:
    reference = build(BertModel, config, seed)
    model = through_checkpoint(reference, bert_spec(config, {"kind": "pooler"}), directory)
    ids, mask, types = inputs(config)
    with torch.no_grad():
        theirs, ours = reference(ids, mask, types), model(ids, mask, types)
    assert_close(ours.last_hidden_state, theirs.last_hidden_state, mask)
    assert_close(ours.pooler_output, theirs.pooler_output)


@pytest.mark.parametrize("name", CONFIGS)
def test_body(name, tmp_path):
    check_body(BertConfig(**CONFIGS[name]), tmp_path, seed=1)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("name", CONFIGS)
def test_masked_language_modeling(name, tied, tmp_path):
    config = BertConfig(**CONFIGS[name], tie_word_embeddings=tied)
    reference = build(BertForMaskedLM, config, seed=2)
    model = through_checkpoint(reference, bert_spec(config, bert_mlm_head(config)), tmp_path)
    ids, mask, types = inputs(config)
    with torch.no_grad():
        assert_close(model(ids, mask, types).logits, reference(ids, mask, types).logits, mask)


@pytest.mark.parametrize("name", CONFIGS)
def test_sequence_classification(name, tmp_path):
    config = BertConfig(**CONFIGS[name], num_labels=5)
    reference = build(BertForSequenceClassification, config, seed=3)
    spec = bert_spec(config, {"kind": "classification", "labels": 5, "activation": "tanh"})
    model = through_checkpoint(reference, spec, tmp_path)
    ids, mask, types = inputs(config)
    with torch.no_grad():
        assert_close(model(ids, mask, types).logits, reference(ids, mask, types).logits)


def test_left_padding_counts_positions_from_the_first_real_token(tmp_path):
    config = BertConfig(**CONFIGS["odd-heads"])
    reference = build(BertModel, config, seed=4)
    model = through_checkpoint(reference, bert_spec(config, {"kind": "pooler"}), tmp_path)
    ids, mask, types = inputs(config, "left")
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad():
        theirs = reference(ids, mask, types, position_ids=positions).last_hidden_state
        assert_close(model(ids, mask, types).last_hidden_state, theirs, mask)


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    heads = data.draw(st.integers(1, 7), "heads")
    config = BertConfig(
        vocab_size=data.draw(st.integers(5, 90), "vocab_size"),
        hidden_size=heads * data.draw(st.integers(3, 9), "head_dim"),
        num_hidden_layers=data.draw(st.integers(1, 4), "layers"),
        num_attention_heads=heads,
        intermediate_size=data.draw(st.integers(1, 70), "hidden"),
        hidden_act=data.draw(st.sampled_from(["gelu", "gelu_new", "relu", "silu"]), "activation"),
        layer_norm_eps=data.draw(st.sampled_from([1e-12, 1e-5, 1e-2]), "eps"),
        type_vocab_size=data.draw(st.integers(1, 4), "token_types"),
        max_position_embeddings=data.draw(st.integers(1, 40), "context_length"),
    )
    check_body(config, tmp_path_factory.mktemp("bert"), seed=data.draw(st.integers(0, 99), "seed"))
