"""Qwen3.5-MoE with images against transformers: the mixtures of its decoder, with images among the tokens."""

from __future__ import annotations

from typing import Any

import pytest
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.mixtures import draw_experts
from tests.parity.families.vision_language.test_qwen2_vl import TOKENS
from tests.parity.families.vision_language.test_qwen3_5 import CONFIGS as DENSE
from tests.parity.families.vision_language.test_qwen3_5 import draw_images, draw_text
from tests.parity.families.vision_language_tests import VisionLanguageTests

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


@pytest.mark.slow
class TestQwen35Moe(VisionLanguageTests):
    model_class = hf.Qwen3_5MoeForConditionalGeneration
    defaults = TOKENS
    configs = {
        name: {**values, "text_config": sparse(values["text_config"], MIXTURES[name])}
        for name, values in DENSE.items()
    }
    drawn = {}

    @staticmethod
    def draw(data):
        mixture = draw_experts(data) | dict.fromkeys(
            ("moe_intermediate_size", "shared_expert_intermediate_size"), st.integers(1, 30)
        )
        del mixture["norm_topk_prob"]
        return dict(text_config=sparse(draw_text(data), mixture), vision_config=draw_images())
