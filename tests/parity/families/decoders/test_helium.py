"""Helium against transformers."""

from __future__ import annotations

import transformers as hf

from tests.parity.families.draws import EPS, FLAG
from tests.parity.families.llamas import LINEAR, YARN, LlamaTests, draw_llama, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY


class TestHelium(LlamaTests):
    model_class = hf.HeliumForCausalLM
    configs = {
        "grouped": dict(GROUPED, head_dim=10, rms_norm_eps=1e-3, rope_parameters=rotation(500.0)),
        "biases, tied": dict(
            MULTI_HEAD, head_dim=8, attention_bias=True, mlp_bias=True, hidden_act="gelu_new",
            tie_word_embeddings=True, rope_parameters=LINEAR,
        ),
        "yarn": dict(MULTI_QUERY, head_dim=4, rope_parameters=YARN),
    }  # fmt: skip
    heads = ("Model", "ForSequenceClassification", "ForTokenClassification")
    refusals = (
        ("hidden_act", "swiglu", "Did you mean 'silu'?"),
        ("head_dim", 12, "must be 10"),
        ("partial_rotary_factor", 0.5, "must be 1"),
        ("sliding_window", 4, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        values = draw_llama(data)
        return values | dict(
            attention_bias=FLAG, mlp_bias=FLAG, head_dim=values["hidden_size"] // values["num_attention_heads"],
            rms_norm_eps=EPS,
        )  # fmt: skip
