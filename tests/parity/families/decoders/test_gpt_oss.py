"""GPT-OSS against transformers."""

from __future__ import annotations

from typing import Any

import transformers as hf
from hypothesis import strategies as st

from specs.forms.canonical import canonical, differences
from tests.parity.families.draws import EPS, FLAG, HEAD_DIM, WINDOW
from tests.parity.families.family import FamilyTests
from tests.parity.families.llamas import LINEAR, draw_llama, rotation
from tests.parity.families.sizes import GROUPED
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config

FULL, SLIDING = "full_attention", "sliding_attention"
YARN = {
    "rope_type": "yarn", "rope_theta": 700.0, "factor": 4.0, "original_max_position_embeddings": 32,
    "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
}  # fmt: skip


def test_a_config_that_says_no_rotation_has_that_of_the_published_models():
    data = hf.GptOssConfig(num_hidden_layers=2).to_dict()
    silent = {key: value for key, value in data.items() if not key.startswith("rope")}
    stated, unstated = (
        spec_of_config(Config(each, "config.json"), name="gpt-oss") for each in (data, silent)
    )
    position: Any = stated.position
    assert position.scaling.factor == 32.0
    assert not list(differences(canonical(stated), canonical(unstated)))


class TestGptOss(FamilyTests):
    model_class = hf.GptOssForCausalLM
    configs = {
        "two of five": dict(
            GROUPED, hidden_size=30, head_dim=10, rms_norm_eps=1e-3, max_position_embeddings=128, num_local_experts=5,
            num_experts_per_tok=2, sliding_window=4, swiglu_limit=0.5, rope_parameters=YARN,
        ),
        "without biases": dict(
            vocab_size=47, hidden_size=33, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=3,
            head_dim=8, intermediate_size=9, max_position_embeddings=128, num_local_experts=3, num_experts_per_tok=3,
            sliding_window=6, layer_types=[FULL, SLIDING], attention_bias=False, swiglu_limit=0.8,
            tie_word_embeddings=True, rope_parameters=rotation(90.0),
        ),
        "no windows": dict(
            vocab_size=31, hidden_size=28, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=1,
            head_dim=32, intermediate_size=13, rms_norm_eps=1e-6, max_position_embeddings=128, num_local_experts=4,
            num_experts_per_tok=3, layer_types=[FULL, FULL], rope_parameters=LINEAR,
        ),
    }  # fmt: skip
    heads = ("Model", "ForSequenceClassification", "ForTokenClassification")
    refusals = [
        ("swiglu_alpha", 1.5, "must be 1.702"),
        ("hidden_act", "gelu", 'must be "silu"'),
        ("sliding_window", None, "must be a number"),
        ("layer_types", [FULL, SLIDING, "linear_attention"], "must have supported kinds only"),
        ("quantization_config", {"quant_method": "hqq"}, "quant_method: is not supported"),
        ("attention_sinks", False, "unsupported fields"),
    ]
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        common, experts = draw_llama(data), data.draw(st.integers(1, 7), "experts")
        del common["hidden_act"]
        common["intermediate_size"] = min(
            common["intermediate_size"], 30
        )  # wide and deep ones add to the rounding
        layers = common["num_hidden_layers"] = min(common["num_hidden_layers"], 3)
        kinds = st.none() | st.lists(st.sampled_from([FULL, SLIDING]), min_size=layers, max_size=layers)
        return dict(
            **common, head_dim=HEAD_DIM, rms_norm_eps=EPS, num_local_experts=experts,
            num_experts_per_tok=st.integers(1, experts), sliding_window=WINDOW, layer_types=kinds,
            attention_bias=FLAG, swiglu_limit=st.sampled_from([0.2, 1.0, 7.0]),
        )  # fmt: skip
