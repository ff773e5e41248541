"""A published checkpoint: MiniLM against transformers."""

import pytest
import torch
import torch.nn.functional as F

from specs.load import load as load_spec
from tests.parity.minilm import SPEC, load_minilm, mean_pooled
from tests.parity.reference import assert_close, load


@pytest.fixture(scope="module")
def minilm():
    return load_minilm()


def test_has_the_published_number_of_parameters(minilm):
    spec = load_spec(SPEC)
    model = load(spec, minilm.directory)
    assert sum(parameter.numel() for parameter in model.parameters()) == spec.expect.parameters


def test_hidden_states_and_embeddings(minilm):
    model = load(load_spec(SPEC), minilm.directory)
    with torch.no_grad():
        ours = model(minilm.input_ids, minilm.attention_mask, minilm.token_type_ids).last_hidden_state
    assert minilm.attention_mask.sum(1).unique().numel() > 1
    assert_close(ours, minilm.hidden_states(), minilm.attention_mask)
    pooled = mean_pooled(ours, minilm.attention_mask)
    assert_close(pooled, minilm.embeddings())
    assert F.cosine_similarity(pooled, minilm.embeddings()).min() > 1 - 1e-6


def test_the_pooler_may_be_left_out(minilm):
    spec = load_spec(SPEC, ["head.kind=none"])
    model = load(spec, minilm.directory)
    with torch.no_grad():
        ours = model(minilm.input_ids, minilm.attention_mask, minilm.token_type_ids).last_hidden_state
    assert_close(ours, minilm.hidden_states(), minilm.attention_mask)
