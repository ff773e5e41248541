"""OLMo and OLMo 2 against transformers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import Olmo2Config, Olmo2ForCausalLM, OlmoConfig, OlmoForCausalLM

from tests.parity.families.harness import check
from tests.parity.families.llamas import EPS, LINEAR, SPECIAL, YARN, classes, draw_llama, labels, rotation
from tests.parity.families.refusals import refused
from tests.thinned import one_in

HEADS = ("Model", "ForSequenceClassification")
CONFIGS = {
    "grouped": dict(
        vocab_size=61, hidden_size=60, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
        intermediate_size=41, max_position_embeddings=128, attention_bias=True, tie_word_embeddings=True,
        rope_parameters=rotation(500.0),
    ),
    "linear": dict(
        vocab_size=47, hidden_size=40, num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=5,
        intermediate_size=50, max_position_embeddings=128, hidden_act="gelu_new", rope_parameters=LINEAR,
    ),
    "yarn": dict(
        vocab_size=31, hidden_size=28, num_hidden_layers=1, num_attention_heads=7, num_key_value_heads=1,
        intermediate_size=33, max_position_embeddings=128, rope_parameters=YARN,
    ),
}  # fmt: skip
CLIPS = {"grouped": 0.5, "linear": 1.25, "yarn": None}
EPSILONS = {"grouped": 1e-3, "linear": 1e-6, "yarn": 1e-5}


def olmo(name: str, **more) -> OlmoConfig:
    return configured(OlmoConfig, **CONFIGS[name], clip_qkv=CLIPS[name], **more)


def olmo2(name: str, **more) -> Olmo2Config:
    return configured(Olmo2Config, **CONFIGS[name], rms_norm_eps=EPSILONS[name], **more)


def configured(config_class, **values):
    values["rope_parameters"] = dict(values["rope_parameters"])
    return config_class(**{**SPECIAL, **values})


@one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration_of_olmo(name, tmp_path):
    check(OlmoForCausalLM, olmo(name), tmp_path)


@one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration_of_olmo2(name, tmp_path):
    check(Olmo2ForCausalLM, olmo2(name), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("model_class", classes("Olmo", *HEADS))
def test_other_heads_of_olmo(model_class, tmp_path):
    check(model_class, olmo("grouped", **labels(model_class)), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("model_class", classes("Olmo2", *HEADS))
def test_other_heads_of_olmo2(model_class, tmp_path):
    check(model_class, olmo2("grouped", **labels(model_class)), tmp_path)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration_of_olmo(data, tmp_path_factory):
    config = OlmoConfig(
        **draw_llama(data),
        attention_bias=data.draw(st.booleans(), "attention_bias"),
        clip_qkv=data.draw(st.none() | st.sampled_from([0.3, 1.0, 8.0]), "clip"),
    )
    directory, seed = tmp_path_factory.mktemp("olmo"), data.draw(st.integers(0, 99), "seed")
    check(OlmoForCausalLM, config, directory, seed=seed, onnx=seed % 5 == 0, fuzzed=True)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration_of_olmo2(data, tmp_path_factory):
    config = Olmo2Config(
        **draw_llama(data),
        attention_bias=data.draw(st.booleans(), "attention_bias"),
        rms_norm_eps=data.draw(EPS, "eps"),
    )
    directory, seed = tmp_path_factory.mktemp("olmo2"), data.draw(st.integers(0, 99), "seed")
    check(Olmo2ForCausalLM, config, directory, seed=seed, onnx=seed % 5 == 0, fuzzed=True)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("hidden_act", "swiglu", "did you mean 'silu'?"),
        ("rope_parameters", {"rope_type": "linar", "factor": 2.0}, "did you mean 'linear'?"),
        ("partial_rotary_factor", 0.5, "must be 1"),
        ("weight_tying", True, "not modelled"),
    ],
)
def test_what_is_not_modelled_is_refused(field, value, said):
    refused(olmo("linear"), field, value, said)
    refused(olmo2("linear"), field, value, said)


def test_olmo_has_no_eps_to_choose():
    refused(olmo("linear"), "rms_norm_eps", 1e-6, "not modelled")
