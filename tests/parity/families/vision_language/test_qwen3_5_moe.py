"""Qwen3.5-MoE with images against transformers: the mixtures of its decoder, with images among the tokens."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import Qwen3_5MoeConfig, Qwen3_5MoeForConditionalGeneration

from tests.parity.families import vision_language_tests as vision_language
from tests.parity.families.mixtures import draw_experts
from tests.parity.families.vision_language.test_qwen2_vl import TOKENS
from tests.parity.families.vision_language.test_qwen3_5 import CONFIGS as DENSE
from tests.parity.families.vision_language.test_qwen3_5 import drawn_text, drawn_vision
from tests.thinned import one_in

MIXTURES: dict[str, dict[str, int]] = {
    "qwen3.5": dict(
        moe_intermediate_size=13, num_experts=5, num_experts_per_tok=2, shared_expert_intermediate_size=17
    ),
    "other sizes, tied": dict(
        moe_intermediate_size=7, num_experts=3, num_experts_per_tok=3, shared_expert_intermediate_size=5
    ),
    "attention alone": dict(
        moe_intermediate_size=24, num_experts=4, num_experts_per_tok=2, shared_expert_intermediate_size=20
    ),
}


def sparse(text: dict[str, Any], mixture: dict[str, int]) -> dict[str, Any]:
    """A decoder with a mixture in every layer."""
    return {**{name: value for name, value in text.items() if name != "intermediate_size"}, **mixture}


CONFIGS = {
    name: {**config, "text_config": sparse(config["text_config"], MIXTURES[name])}
    for name, config in DENSE.items()
}


def config_of(**values: Any) -> Qwen3_5MoeConfig:
    """A config with one product for each expert."""
    config = Qwen3_5MoeConfig(**values)
    config._experts_implementation = config.text_config._experts_implementation = "eager"
    return config


@one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    vision_language.check(Qwen3_5MoeForConditionalGeneration, config_of(**CONFIGS[name]), tmp_path)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    drawn = draw_experts(data)
    mixture = {
        "num_experts": drawn["num_experts"],
        "num_experts_per_tok": drawn["num_experts_per_tok"],
        "moe_intermediate_size": data.draw(st.integers(1, 30), "width of an expert"),
        "shared_expert_intermediate_size": data.draw(st.integers(1, 30), "shared"),
    }
    config = config_of(
        text_config=sparse(drawn_text(data), mixture), vision_config=drawn_vision(data), **TOKENS
    )
    seed = data.draw(st.integers(0, 99), "seed")
    vision_language.check(
        Qwen3_5MoeForConditionalGeneration,
        config,
        tmp_path_factory.mktemp("drawn"),
        seed=seed,
        onnx=seed % 5 == 0,
        fuzzed=True,
    )
