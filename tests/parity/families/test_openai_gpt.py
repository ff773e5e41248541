"""GPT against transformers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    OpenAIGPTConfig,
    OpenAIGPTForSequenceClassification,
    OpenAIGPTLMHeadModel,
    OpenAIGPTModel,
)

from tests.parity.families.harness import check
from tests.parity.families.refusals import refused
from tests.thinned import one_in

CONFIGS = {
    "odd-heads": dict(
        vocab_size=61, n_embd=21, n_layer=3, n_head=3, n_positions=19, afn="relu", layer_norm_epsilon=1e-3,
    ),
    "untied": dict(
        vocab_size=40, n_embd=32, n_layer=1, n_head=4, n_positions=16, afn="silu", layer_norm_epsilon=1e-6,
        tie_word_embeddings=False,
    ),
    "gelu": dict(
        vocab_size=83, n_embd=20, n_layer=2, n_head=5, n_positions=25, afn="gelu", layer_norm_epsilon=1e-5,
    ),
}  # fmt: skip


def config_of(**values) -> OpenAIGPTConfig:
    return OpenAIGPTConfig(**values, pad_token_id=0, num_labels=4)


@one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    check(OpenAIGPTLMHeadModel, config_of(**CONFIGS[name]), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("model_class", [OpenAIGPTModel, OpenAIGPTForSequenceClassification])
def test_other_heads(model_class, tmp_path):
    check(model_class, config_of(**CONFIGS["odd-heads"]), tmp_path, sides=("right",))


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    heads = data.draw(st.integers(1, 7), "heads")
    config = config_of(
        vocab_size=data.draw(st.integers(5, 90), "vocab_size"),
        n_embd=heads * data.draw(st.integers(3, 9), "head_dim"),
        n_layer=data.draw(st.integers(1, 4), "layers"),
        n_head=heads,
        n_positions=data.draw(st.integers(5, 40), "context_length"),
        afn=data.draw(st.sampled_from(["gelu", "relu", "silu", "swish"]), "activation"),
        layer_norm_epsilon=data.draw(st.sampled_from([1e-5, 1e-3, 1e-2]), "eps"),
        tie_word_embeddings=data.draw(st.booleans(), "tied"),
    )
    directory, seed = tmp_path_factory.mktemp("openai-gpt"), data.draw(st.integers(0, 99), "seed")
    check(OpenAIGPTLMHeadModel, config, directory, seed=seed, onnx=seed % 5 == 0, fuzzed=True)


REFUSED = {
    "afn": ("gelu_new", "did you mean 'gelu'"),
    "n_special": (3, "must be 0"),
    "architectures": (["OpenAIGPTDoubleHeadsModel"], "has no class that is modelled"),
    "n_inner": (4, "not modelled"),
}


@pytest.mark.parametrize("field", REFUSED)
def test_refused(field):
    refused(config_of(**CONFIGS["odd-heads"]), field, *REFUSED[field])
