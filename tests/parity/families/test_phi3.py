"""Phi-3 against transformers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import Phi3Config, Phi3ForCausalLM

from tests.parity.families.harness import check
from tests.parity.families.llamas import EPS, SPECIAL, classes, draw_llama, labels, rotation
from tests.parity.families.refusals import refused
from tests.thinned import one_in
from zoo.configs.config import Config
from zoo.configs.importing import spec_of_config


def longrope(pairs: int, **more) -> dict:
    """A scaling with a factor of its own for every pair."""
    short, long = ([1.0 + step * pair for pair in range(pairs)] for step in (0.25, 1.5))
    return {"rope_type": "longrope", "rope_theta": 900.0, "short_factor": short, "long_factor": long, **more}


CONFIGS = {
    "windowed": dict(
        vocab_size=61, hidden_size=60, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
        intermediate_size=41, rms_norm_eps=1e-3, max_position_embeddings=128, sliding_window=5,
        tie_word_embeddings=True, rope_parameters=rotation(500.0), resid_pdrop=0.1, embd_pdrop=0.1,
    ),
    "part of each head": dict(
        vocab_size=47, hidden_size=40, num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=5,
        intermediate_size=50, rms_norm_eps=1e-6, max_position_embeddings=128, hidden_act="gelu_new",
        rope_parameters={**rotation(70.0), "partial_rotary_factor": 0.75},
    ),
    "longrope": dict(
        vocab_size=31, hidden_size=48, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1,
        intermediate_size=33, max_position_embeddings=128, original_max_position_embeddings=16,
        rope_parameters=longrope(8),
    ),
    "longrope of part of each head": dict(
        vocab_size=31, hidden_size=48, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=3,
        intermediate_size=33, max_position_embeddings=64, original_max_position_embeddings=20,
        rope_parameters=longrope(6, partial_rotary_factor=0.75, attention_factor=1.3),
    ),
}  # fmt: skip


def config_of(**values) -> Phi3Config:
    values["rope_parameters"] = dict(values["rope_parameters"])
    return Phi3Config(**{**SPECIAL, **values})


@one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    check(Phi3ForCausalLM, config_of(**CONFIGS[name]), tmp_path)


@pytest.mark.parametrize("name", ["longrope", "longrope of part of each head"])
def test_beyond_the_original_context(name, tmp_path):
    check(Phi3ForCausalLM, config_of(**CONFIGS[name]), tmp_path, length=29, steps=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model_class", classes("Phi3", "Model", "ForSequenceClassification", "ForTokenClassification")
)
def test_other_heads(model_class, tmp_path):
    check(model_class, config_of(**CONFIGS["windowed"], **labels(model_class)), tmp_path)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    common = draw_llama(data)
    width = common["hidden_size"] // common["num_attention_heads"]
    part = data.draw(st.sampled_from([1.0, 0.75, 0.5]), "part")
    part = part if width * part % 2 == 0 else 1.0
    original = data.draw(st.integers(8, 40), "original context")
    ropes = [rotation(300.0), longrope(int(width * part) // 2)]
    rope = {**data.draw(st.sampled_from(ropes), "rope"), "partial_rotary_factor": part}
    config = config_of(
        **{**common, "rope_parameters": rope},
        original_max_position_embeddings=original,
        rms_norm_eps=data.draw(EPS, "eps"),
        sliding_window=data.draw(st.none() | st.integers(2, 15), "window"),
    )
    directory, seed = tmp_path_factory.mktemp("phi3"), data.draw(st.integers(0, 99), "seed")
    steps = rope["rope_type"] == "default" or original >= 17
    options = {"length": 17, "steps": steps, "onnx": seed % 5 == 0, "fuzzed": True}
    check(Phi3ForCausalLM, config, directory, seed=seed, **options)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("hidden_act", "silue", "did you mean 'silu'?"),
        ("rope_parameters", {"rope_type": "longrop", "factor": 2.0}, "did you mean 'longrope'?"),
        ("rope_parameters", {"rope_type": "linear", "factor": 2.0}, "not modelled"),
        ("rope_parameters", {"rope_type": "su", "long_factor": [1.0]}, "short_factor: is required"),
        ("attention_bias", True, "no biases"),
        ("mlp_bias", True, "no biases"),
        ("lm_head_bias", True, "no biases"),
        ("full_attn_mod", 2, "must be 1"),
        ("rope_position_scale", 2.0, "not modelled"),
    ],
)
def test_what_is_not_modelled_is_refused(field, value, said):
    refused(config_of(**CONFIGS["part of each head"]), field, value, said)


def test_the_first_configs_call_the_scaling_su_and_keep_the_original_context_outside():
    scaling = longrope(8)
    del scaling["rope_type"], scaling["rope_theta"]
    first = {
        "model_type": "phi3", "hidden_size": 48, "num_attention_heads": 3, "num_hidden_layers": 1,
        "num_key_value_heads": 3, "intermediate_size": 33, "vocab_size": 31, "max_position_embeddings": 131072,
        "original_max_position_embeddings": 4096, "rope_theta": 10000.0, "sliding_window": 262144,
        "rope_scaling": {**scaling, "type": "su"}, "attention_bias": False,
        "auto_map": {"AutoConfig": "configuration_phi3.Phi3Config"}, "_name_or_path": "Phi-3",
    }  # fmt: skip

    def rope(data):
        return spec_of_config(Config(data, "config.json"), name="tiny").position.scaling

    found = rope(first)
    assert found == rope({**first, "rope_scaling": {**scaling, "type": "longrope"}})
    assert found == rope({**first, "rope_scaling": {**scaling, "type": "yarn"}})
    assert (found.kind, found.original_context_length) == ("longrope", 4096)
    assert found.attention_factor == pytest.approx(math.sqrt(1 + math.log(32) / math.log(4096)))
