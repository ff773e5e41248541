"""Hunyuan, dense and with a mixture, against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, HEAD_DIM
from tests.parity.families.llamas import YARN, LlamaTests, draw_llama, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY

ALPHA = {
    "rope_type": "dynamic", "rope_theta": 1000.0, "alpha": 50.0, "factor": 1.0, "beta_fast": 32, "beta_slow": 1,
    "mscale": 1.0, "mscale_all_dim": 1.0,
}  # fmt: skip


class TestHunyuan(LlamaTests):
    model_class = hf.HunYuanDenseV1ForCausalLM
    configs = {
        "stretched": dict(GROUPED, head_dim=14, rms_norm_eps=1e-3, rope_parameters=ALPHA),
        "biases, tied": dict(
            MULTI_HEAD, head_dim=8, attention_bias=True, hidden_act="gelu_new", tie_word_embeddings=True,
            rope_parameters=rotation(500.0),
        ),
        "yarn": dict(MULTI_QUERY, head_dim=4, rope_parameters=YARN),
    }  # fmt: skip
    heads = ("Model", "ForSequenceClassification")
    refusals = (
        ("hidden_act", "swiglu", "Did you mean 'silu'?"),
        ("rope_parameters", {**ALPHA, "rope_type": "dynamc"}, "Did you mean 'dynamic'?"),
        ("rope_parameters", {**ALPHA, "beta": 1.0}, "unsupported fields"),
        ("sliding_window", 4, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        values = draw_llama(data)
        stretched = data.draw(st.booleans(), "stretched")
        return values | dict(
            attention_bias=FLAG, head_dim=HEAD_DIM, rms_norm_eps=EPS,
            rope_parameters=ALPHA if stretched else values["rope_parameters"],
        )  # fmt: skip


MIXTURE = dict(num_experts=5, moe_topk=2)


class TestHunyuanMoe(LlamaTests):
    model_class = hf.HunYuanMoEV1ForCausalLM
    configs = {
        "stretched": {**TestHunyuan.configs["stretched"], **MIXTURE},
        "for each layer, tied": {**TestHunyuan.configs["biases, tied"], "num_experts": 4, "moe_topk": [3, 3]},
    }
    heads = TestHunyuan.heads
    refusals = (
        ("hidden_act", "swiglu", "Did you mean 'silu'?"),
        ("moe_topk", [2, 3, 2], "must be one whole number, or the same one for every layer"),
        ("moe_intermediate_size", [40] * 3, "must be 41: the shared feed-forward is as wide as an expert"),
        ("num_shared_expert", [2] * 3, "must be 1: the shared feed-forward"),
        ("use_cla", True, "must be false: each layer has keys and values of its own"),
        ("use_mixed_mlp_moe", False, "must be true: every mixture has a shared feed-forward"),
    )

    @staticmethod
    def draw(data):
        experts = data.draw(st.integers(1, 7), "experts")
        top_k = data.draw(st.integers(1, experts), "top_k")
        return TestHunyuan.draw(data) | dict(num_experts=experts, moe_topk=top_k)
