"""OLMo and OLMo 2 against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG
from tests.parity.families.family import FamilyTests
from tests.parity.families.llamas import LINEAR, YARN, draw_llama, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY

HEADS = ("Model", "ForSequenceClassification")
CONFIGS = {
    "grouped": dict(
        GROUPED, max_position_embeddings=128, attention_bias=True, tie_word_embeddings=True,
        rope_parameters=rotation(500.0),
    ),
    "linear": dict(MULTI_HEAD, max_position_embeddings=128, hidden_act="gelu_new", rope_parameters=LINEAR),
    "yarn": dict(MULTI_QUERY, max_position_embeddings=128, rope_parameters=YARN),
}  # fmt: skip


CLIPS = {"grouped": 0.5, "linear": 1.25, "yarn": None}
EPSILONS = {"grouped": 1e-3, "linear": 1e-6, "yarn": 1e-5}
REFUSALS = (
    ("hidden_act", "swiglu", "Did you mean 'silu'?"),
    ("rope_parameters", {"rope_type": "linar", "factor": 2.0}, "Did you mean 'linear'?"),
    ("partial_rotary_factor", 0.5, "must be 1"),
    ("weight_tying", True, "unsupported fields"),
)


def draw_olmo(data) -> dict:
    return draw_llama(data) | dict(attention_bias=FLAG)


class TestOlmo(FamilyTests):
    model_class = hf.OlmoForCausalLM
    configs = {name: {**values, "clip_qkv": CLIPS[name]} for name, values in CONFIGS.items()}
    heads = HEADS
    refusals = (*REFUSALS, ("rms_norm_eps", 1e-6, "unsupported fields"))
    of_refusals = "linear"

    @staticmethod
    def draw(data):
        clips = st.none() | st.sampled_from([0.3, 1.0, 8.0])
        return draw_olmo(data) | dict(clip_qkv=clips)


class TestOlmo2(FamilyTests):
    model_class = hf.Olmo2ForCausalLM
    configs = {name: {**values, "rms_norm_eps": EPSILONS[name]} for name, values in CONFIGS.items()}
    heads = HEADS
    refusals = REFUSALS
    of_refusals = "linear"

    @staticmethod
    def draw(data):
        return draw_olmo(data) | dict(rms_norm_eps=EPS)
