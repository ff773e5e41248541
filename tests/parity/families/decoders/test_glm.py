"""GLM-4 against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG
from tests.parity.families.llamas import LINEAR, LlamaTests, draw_llama, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY

HEADS = ("Model", "ForSequenceClassification", "ForTokenClassification")
CONFIGS = {
    "grouped": dict(GROUPED, head_dim=16, rms_norm_eps=1e-3, rope_parameters=rotation(500.0)),
    "without biases, tied": dict(
        MULTI_HEAD, head_dim=8, attention_bias=False, hidden_act="gelu_new", tie_word_embeddings=True,
        rope_parameters={**LINEAR, "partial_rotary_factor": 1.0},
    ),
    "a quarter": dict(
        MULTI_QUERY, hidden_size=56, head_dim=8, rope_parameters={**rotation(90.0), "partial_rotary_factor": 0.25},
    ),
}  # fmt: skip
REFUSALS = (
    ("hidden_act", "swiglu", "Did you mean 'silu'?"),
    ("rope_parameters", {"rope_type": "linar", "factor": 2.0}, "Did you mean 'linear'?"),
    ("mlp_bias", True, "unsupported fields"),
    ("sliding_window", 4, "unsupported fields"),
)


def draw_glm(data) -> dict:
    return draw_llama(data) | dict(
        attention_bias=FLAG, head_dim=4 * data.draw(st.integers(2, 6), "head_dim / 4"), rms_norm_eps=EPS,
    )  # fmt: skip


class TestGlm(LlamaTests):
    model_class = hf.GlmForCausalLM
    configs = CONFIGS
    heads = HEADS
    refusals = REFUSALS
    draw = staticmethod(draw_glm)


class TestGlm4(LlamaTests):
    model_class = hf.Glm4ForCausalLM
    configs = CONFIGS
    heads = HEADS
    refusals = REFUSALS
    draw = staticmethod(draw_glm)
