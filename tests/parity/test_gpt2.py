"""GPT-2 against transformers."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import GPT2Config, GPT2ForSequenceClassification, GPT2LMHeadModel

from tests.parity.reference import (
    assert_close,
    build,
    gpt2_spec,
    positions,
    ragged,
    step_through,
    through_checkpoint,
)

CONFIGS = {
    "odd-heads": dict(
        vocab_size=61, n_embd=21, n_layer=3, n_head=3, n_inner=17, n_positions=19,
        activation_function="relu", layer_norm_epsilon=1e-3, tie_word_embeddings=True,
    ),
    "untied": dict(
        vocab_size=40, n_embd=32, n_layer=1, n_head=4, n_inner=70, n_positions=16,
        activation_function="gelu", layer_norm_epsilon=1e-6, tie_word_embeddings=False,
    ),
    "unscaled": dict(
        vocab_size=83, n_embd=20, n_layer=2, n_head=5, n_positions=25,
        activation_function="gelu_new", layer_norm_epsilon=1e-5, scale_attn_weights=False,
    ),
}  # fmt: skip


def config_of(**values) -> GPT2Config:
    return GPT2Config(**values, bos_token_id=0, eos_token_id=0, pad_token_id=0)


def check(config: GPT2Config, directory, seed: int) -> None:
    reference = build(GPT2LMHeadModel, config, seed)
    model = through_checkpoint(reference, gpt2_spec(config), directory)
    for side in ("right", "left"):
        ids, mask = ragged(3, min(11, config.n_positions), config.vocab_size, side, seed)
        with torch.no_grad():
            theirs = reference(ids, attention_mask=mask, position_ids=positions(mask)).logits
            assert_close(model(ids, mask).logits, theirs, mask)
            assert_close(step_through(model, ids, mask, prefill=ids.shape[1] // 2), theirs, mask)


@pytest.mark.parametrize("name", CONFIGS)
def test_logits_and_cached_steps(name, tmp_path):
    check(config_of(**CONFIGS[name]), tmp_path, seed=1)


@pytest.mark.parametrize("side", ["right", "left"])
def test_sequence_classification_takes_the_last_real_token(side, tmp_path):
    config = config_of(**CONFIGS["odd-heads"], num_labels=4)
    reference = build(GPT2ForSequenceClassification, config, seed=2)
    head = {"kind": "classification", "labels": 4, "pooling": "last", "bias": False}
    model = through_checkpoint(reference, gpt2_spec(config, head), tmp_path)
    ids, mask = ragged(3, 9, config.vocab_size, side, seed=3)
    ids = (ids.clamp(min=1)) * mask  # the reference finds the last token that is not padding
    with torch.no_grad():
        theirs = reference(ids, attention_mask=mask, position_ids=positions(mask)).logits
        assert_close(model(ids, mask).logits, theirs)


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    heads = data.draw(st.integers(1, 7), "heads")
    config = config_of(
        vocab_size=data.draw(st.integers(5, 90), "vocab_size"),
        n_embd=heads * data.draw(st.integers(3, 9), "head_dim"),
        n_layer=data.draw(st.integers(1, 4), "layers"),
        n_head=heads,
        n_inner=data.draw(st.integers(1, 70), "hidden"),
        n_positions=data.draw(st.integers(2, 40), "context_length"),
        activation_function=data.draw(st.sampled_from(["gelu", "gelu_new", "relu", "silu"]), "activation"),
        layer_norm_epsilon=data.draw(st.sampled_from([1e-8, 1e-5, 1e-2]), "eps"),
        scale_attn_weights=data.draw(st.booleans(), "scaled"),
        tie_word_embeddings=data.draw(st.booleans(), "tied"),
    )
    check(config, tmp_path_factory.mktemp("gpt2"), seed=data.draw(st.integers(0, 99), "seed"))
