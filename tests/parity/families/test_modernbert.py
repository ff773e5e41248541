"""ModernBERT against transformers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import ModernBertConfig, ModernBertForMaskedLM, ModernBertForSequenceClassification

from tests.parity.families.encoders import ACTIVATIONS, EPS, classes, labels, sides
from tests.parity.families.harness import check
from tests.parity.families.refusals import refused
from tests.thinned import one_in

TOKENS = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2)
FULL, LOCAL = "full_attention", "sliding_attention"
DEFAULT = {"rope_type": "default", "rope_theta": 5000.0}
LINEAR = {"rope_type": "linear", "rope_theta": 700.0, "factor": 2.5}
YARN = {"rope_type": "yarn", "rope_theta": 300.0, "factor": 4.0, "original_max_position_embeddings": 32}

CONFIGS = {
    "every other": dict(
        vocab_size=61, hidden_size=30, num_hidden_layers=4, num_attention_heads=3, intermediate_size=17,
        hidden_activation="gelu_new", norm_eps=1e-3, max_position_embeddings=64, local_attention=6,
        global_attn_every_n_layers=2, attention_bias=True, classifier_activation="relu",
    ),
    "stated types": dict(
        vocab_size=33, hidden_size=40, num_hidden_layers=3, num_attention_heads=5, intermediate_size=96,
        hidden_activation="silu", norm_eps=1e-6, norm_bias=True, max_position_embeddings=128, local_attention=4,
        layer_types=[LOCAL, FULL, LOCAL], rope_parameters={FULL: YARN, LOCAL: DEFAULT}, mlp_bias=True,
        decoder_bias=False, classifier_bias=True,
    ),
    "untied": dict(
        vocab_size=97, hidden_size=28, num_hidden_layers=7, num_attention_heads=2, intermediate_size=50,
        max_position_embeddings=128, local_attention=9, rope_parameters={FULL: DEFAULT, LOCAL: LINEAR},
        tie_word_embeddings=False,
    ),
}  # fmt: skip


def config_of(**values) -> ModernBertConfig:
    if "rope_parameters" in values:
        values["rope_parameters"] = {kind: dict(rope) for kind, rope in values["rope_parameters"].items()}
    return ModernBertConfig(**values, **TOKENS)


@one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    check(ModernBertForMaskedLM, config_of(**CONFIGS[name]), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("model_class", classes("ModernBert"))
def test_other_heads(model_class, tmp_path):
    config = config_of(**CONFIGS["every other"], **labels(model_class))
    check(model_class, config, tmp_path, sides=sides(model_class))


def test_the_mean_of_all_tokens(tmp_path):
    config = config_of(**CONFIGS["stated types"], classifier_pooling="mean", num_labels=4)
    check(ModernBertForSequenceClassification, config, tmp_path)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    heads, layers = data.draw(st.integers(1, 5), "heads"), data.draw(st.integers(1, 6), "layers")
    kinds = st.lists(st.sampled_from([FULL, LOCAL]), min_size=layers, max_size=layers)
    ropes = st.sampled_from([DEFAULT, LINEAR, YARN])
    config = config_of(
        vocab_size=data.draw(st.integers(5, 90), "vocab_size"),
        hidden_size=heads * 2 * data.draw(st.integers(2, 6), "pairs"),
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=data.draw(st.integers(1, 70), "hidden"),
        hidden_activation=data.draw(ACTIVATIONS, "activation"),
        norm_eps=data.draw(EPS, "eps"),
        norm_bias=data.draw(st.booleans(), "norm_bias"),
        max_position_embeddings=128,
        local_attention=data.draw(st.integers(2, 11), "window"),
        layer_types=data.draw(kinds, "types"),
        rope_parameters={FULL: data.draw(ropes, "full"), LOCAL: data.draw(ropes, "local")},
        attention_bias=data.draw(st.booleans(), "attention_bias"),
        mlp_bias=data.draw(st.booleans(), "mlp_bias"),
        decoder_bias=data.draw(st.booleans(), "decoder_bias"),
        classifier_bias=data.draw(st.booleans(), "classifier_bias"),
        classifier_activation=data.draw(ACTIVATIONS, "classifier_activation"),
        tie_word_embeddings=data.draw(st.booleans(), "tied"),
    )
    model_class = data.draw(st.sampled_from([ModernBertForMaskedLM, *classes("ModernBert")]), "class")
    directory, seed = tmp_path_factory.mktemp("modernbert"), data.draw(st.integers(0, 99), "seed")
    where = sides(model_class)
    check(model_class, config, directory, seed=seed, sides=where, onnx=seed % 5 == 0, fuzzed=True)


REFUSED = {
    "position_embedding_type": ("relative_key", 'must be "absolute"'),
    "hidden_activation": ("gelu_nwe", "did you mean 'gelu_new'"),
    "classifier_pooling": ("max", "choose from: cls, mean"),
    "layer_types": ([FULL, "chunked_attention", LOCAL, FULL], "must be full_attention or sliding_attention"),
    "global_attn_every_n_layers": (0, "must be 1 or more"),
    "rope_parameters": ({FULL: {"rope_type": "yran"}}, "did you mean 'yarn'"),
    "rope_scaling": ({"rope_type": "linear", "factor": 2.0}, "must be null: rope_parameters say it"),
    "local_attention": (1, "must be 2 or more"),
}


@pytest.mark.parametrize("field", REFUSED)
def test_refused(field):
    model = {"architectures": ["ModernBertForSequenceClassification"]}
    refused(config_of(**CONFIGS["every other"], **model), field, *REFUSED[field])
