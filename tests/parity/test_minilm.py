"""A published checkpoint: MiniLM against transformers."""

import onnxruntime
import pytest
import torch
import torch.nn.functional as F

from specs.language.load import load as load_spec
from tests.cli.program import done
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


@pytest.fixture(scope="module")
def session(minilm, tmp_path_factory):
    """The exported model in ONNX Runtime, as a user gets it: one command, then a directory moved elsewhere."""
    place = tmp_path_factory.mktemp("minilm")
    command = ["export", SPEC, "--weights", str(minilm.directory), "-o", str(place / "out")]
    done(*command)
    moved = (place / "out").rename(place / "moved")
    return onnxruntime.InferenceSession(moved / "model.onnx", providers=["CPUExecutionProvider"])


def embedded(session, batch):
    """Mean-pooled embeddings from ONNX Runtime, B D."""
    feeds = {name: tensor.numpy() for name, tensor in batch.items()}
    hidden, _ = session.run(["last_hidden_state", "pooler_output"], feeds)
    return mean_pooled(torch.from_numpy(hidden), batch["attention_mask"])


def test_embeddings_from_onnx_runtime(minilm, session):
    names = ("input_ids", "attention_mask", "token_type_ids")
    batch = {name: getattr(minilm, name) for name in names}
    ours, theirs = embedded(session, batch), minilm.embeddings()
    assert (ours - theirs).abs().max() < 1e-5
    assert F.cosine_similarity(ours, theirs).min() > 1 - 1e-6
    for row in range(len(ours)):  # alone, without its padding
        real = minilm.attention_mask[row] == 1
        alone = embedded(session, {name: tensor[row : row + 1, real] for name, tensor in batch.items()})
        assert (alone[0] - theirs[row]).abs().max() < 1e-5
