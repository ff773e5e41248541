"""Phi-3 against transformers."""

from __future__ import annotations

import math
from typing import Any

import pytest
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, WINDOW
from tests.parity.families.family import FamilyTests
from tests.parity.families.llamas import draw_llama, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config


def longrope(pairs: int, **more) -> dict:
    """A scaling with a factor of its own for every pair."""
    short, long = ([1.0 + step * pair for pair in range(pairs)] for step in (0.25, 1.5))
    return {"rope_type": "longrope", "rope_theta": 900.0, "short_factor": short, "long_factor": long, **more}


@pytest.mark.parametrize("name", ["longrope", "longrope of part of each head"])
def test_beyond_the_original_context(name, tmp_path):
    TestPhi3().check(hf.Phi3ForCausalLM, TestPhi3.configured(name), tmp_path, length=29)


class TestPhi3(FamilyTests):
    model_class = hf.Phi3ForCausalLM
    configs = {
        "windowed": dict(
            GROUPED, rms_norm_eps=1e-3, max_position_embeddings=128, sliding_window=5, tie_word_embeddings=True,
            rope_parameters=rotation(500.0), resid_pdrop=0.1, embd_pdrop=0.1,
        ),
        "part of each head": dict(
            MULTI_HEAD, rms_norm_eps=1e-6, max_position_embeddings=128, hidden_act="gelu_new",
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
    heads = ("Model", "ForSequenceClassification", "ForTokenClassification")
    refusals = (
        ("hidden_act", "silue", "Did you mean 'silu'?"),
        ("rope_parameters", {"rope_type": "longrop", "factor": 2.0}, "Did you mean 'longrope'?"),
        ("rope_parameters", {"rope_type": "linear", "factor": 2.0}, "not supported"),
        ("rope_parameters", {"rope_type": "su", "long_factor": [1.0]}, "short_factor: is required"),
        ("attention_bias", True, "no biases"),
        ("mlp_bias", True, "no biases"),
        ("lm_head_bias", True, "no biases"),
        ("full_attn_mod", 2, "must be 1"),
        ("rope_position_scale", 2.0, "unsupported fields"),
    )
    of_refusals = "part of each head"
    drawn = {"length": 17}

    def check(self, model_class, config, directory, *, length=13, **options):
        """With steps only if the frequencies of the whole input hold from the first step on."""
        scaled = config.rope_parameters["rope_type"] != "default"
        steps = not scaled or config.original_max_position_embeddings >= length
        return super().check(model_class, config, directory, length=length, steps=steps, **options)

    @staticmethod
    def draw(data):
        common = draw_llama(data)
        width = common["hidden_size"] // common["num_attention_heads"]
        part = data.draw(st.sampled_from([1.0, 0.75, 0.5]), "part")
        part = part if width * part % 2 == 0 else 1.0
        original = data.draw(st.integers(8, 40), "original context")
        ropes = [rotation(300.0), longrope(int(width * part) // 2)]
        rope = {**data.draw(st.sampled_from(ropes), "rope"), "partial_rotary_factor": part}
        return common | dict(
            rope_parameters=rope, original_max_position_embeddings=original, rms_norm_eps=EPS,
            sliding_window=st.none() | WINDOW,
        )  # fmt: skip


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
        position: Any = spec_of_config(Config(data, "config.json"), name="tiny").position
        return position.scaling

    found = rope(first)
    assert found == rope({**first, "rope_scaling": {**scaling, "type": "longrope"}})
    assert found == rope({**first, "rope_scaling": {**scaling, "type": "yarn"}})
    assert (found.kind, found.original_context_length) == ("longrope", 4096)
    assert found.attention_factor == pytest.approx(math.sqrt(1 + math.log(32) / math.log(4096)))
