"""The text models of models with images or sound against transformers, whose text counts alike along all axes."""

from __future__ import annotations

from typing import Any

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG
from tests.parity.families.family import SPECIAL, FamilyTests
from tests.parity.families.llamas import draw_llama, rotation
from tests.parity.families.mixtures import draw_routed
from tests.parity.families.sizes import GROUPED, MULTI_HEAD


def sections(pairs: int, theta: float = 500.0, **more: Any) -> dict[str, Any]:
    """Rotary positions whose pairs all count frames, as they are written back."""
    return {**rotation(theta, **more), "mrope_section": [pairs, 0, 0]}


class TextTests(FamilyTests):
    """Rotation of whole heads, of ``width``."""

    defaults = {**SPECIAL, "max_position_embeddings": 128}
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("rope_parameters", {"rope_type": "yarnn", "factor": 2.0}, "Did you mean 'yarn'?"),
    )
    draws = dict(rms_norm_eps=EPS)
    has_head_dim = False

    @classmethod
    def draw(cls, data):
        common = draw_llama(data)
        del common["tie_word_embeddings"]
        width = common["hidden_size"] // common["num_attention_heads"]
        if cls.has_head_dim:
            width = common["head_dim"] = 2 * data.draw(st.integers(1, 8), "pairs")
        theta = data.draw(st.sampled_from([100.0, 1e4]), "base")
        return {**common, "rope_parameters": sections(width // 2, theta), **cls.draws}


QWEN2 = {
    "grouped": dict(GROUPED, hidden_size=36, rms_norm_eps=1e-3, rope_parameters=sections(3)),
    "windows": dict(
        MULTI_HEAD, num_hidden_layers=3, use_sliding_window=True, sliding_window=4, max_window_layers=1,
        rope_parameters=sections(4, 90.0),
    ),
}  # fmt: skip


class TestQwen2VlText(TextTests):
    model_class = hf.Qwen2VLTextModel
    configs = QWEN2


class TestQwen25VlText(TextTests):
    model_class = hf.Qwen2_5_VLTextModel
    configs = QWEN2


class TestQwen25OmniText(TextTests):
    model_class = hf.Qwen2_5OmniThinkerTextModel
    configs = QWEN2


class TestQwen3VlText(TextTests):
    model_class = hf.Qwen3VLTextModel
    configs = {
        "grouped": {
            **QWEN2["grouped"], "head_dim": 8, "rope_parameters": sections(4, mrope_interleaved=True),
        },
    }  # fmt: skip
    has_head_dim = True
    draws = dict(rms_norm_eps=EPS, attention_bias=FLAG)

    @classmethod
    def draw(cls, data):
        drawn = super().draw(data)
        return {**drawn, "rope_parameters": {**drawn["rope_parameters"], "mrope_interleaved": True}}


class TestQwen3VlMoeText(TestQwen3VlText):
    model_class = hf.Qwen3VLMoeTextModel
    configs = {
        "grouped": {
            **TestQwen3VlText.configs["grouped"], "num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 13,
            "mlp_only_layers": [1],
        },
    }  # fmt: skip

    @classmethod
    def draw(cls, data):
        drawn = super().draw(data)
        experts = data.draw(st.integers(1, 6), "experts")
        return {
            **drawn, "num_experts": experts, "num_experts_per_tok": st.integers(1, experts),
            "moe_intermediate_size": st.integers(1, 20),
        }  # fmt: skip


class TestPaddleOcrText(TextTests):
    model_class = hf.PaddleOCRTextModel
    configs = {
        "grouped": {**QWEN2["grouped"], "head_dim": 8, "rope_parameters": sections(4)},
        "biases": {**QWEN2["grouped"], "head_dim": 6, "use_bias": True, "rope_parameters": sections(3)},
    }
    has_head_dim = True
    draws = dict(rms_norm_eps=EPS, use_bias=FLAG)


class TestGlm4vText(TextTests):
    model_class = hf.Glm4vTextModel
    configs = {
        "whole heads": QWEN2["grouped"],
        "half": {**QWEN2["grouped"], "hidden_size": 48, "rope_parameters": sections(2, partial_rotary_factor=0.5)},
    }  # fmt: skip


class TestGlmOcrText(TextTests):
    model_class = hf.GlmOcrTextModel
    configs = TestGlm4vText.configs


class TestGlm4vMoeText(TextTests):
    model_class = hf.Glm4vMoeTextModel
    configs = {
        "dense first": {
            **QWEN2["grouped"], "head_dim": 8, "moe_intermediate_size": 9, "n_routed_experts": 8, "num_experts_per_tok": 3,
            "n_shared_experts": 2, "n_group": 4, "topk_group": 2, "routed_scaling_factor": 1.5, "first_k_dense_replace": 1,
            "rope_parameters": sections(2, partial_rotary_factor=0.5),
        },
    }  # fmt: skip
    has_head_dim = True

    @classmethod
    def draw(cls, data):
        drawn = super().draw(data)
        pairs = data.draw(st.integers(1, 3), "rotated pairs")
        return {
            **drawn, **draw_routed(data, drawn["num_hidden_layers"]), "attention_bias": FLAG, "rms_norm_eps": EPS,
            "head_dim": 4 * pairs, "rope_parameters": sections(pairs, partial_rotary_factor=0.5),
        }  # fmt: skip


class TestQwen3OmniMoeText(TestQwen3VlMoeText):
    model_class = hf.Qwen3OmniMoeThinkerTextModel
    configs = {
        "grouped": {**TestQwen3VlMoeText.configs["grouped"], "norm_topk_prob": False},
    }
    draws = dict(rms_norm_eps=EPS, attention_bias=FLAG, norm_topk_prob=FLAG)
