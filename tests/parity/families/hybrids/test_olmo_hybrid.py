"""OLMo Hybrid against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, lists
from tests.parity.families.family import SPECIAL, FamilyTests
from tests.parity.families.llamas import YARN, draw_llama, rotation

FULL, LINEAR = "full_attention", "linear_attention"
UNROTATED = {"rope_type": "default", "rope_theta": None}


class TestOlmoHybrid(FamilyTests):
    model_class = hf.OlmoHybridForCausalLM
    defaults = {**SPECIAL, "max_position_embeddings": 128}
    configs = {
        "every fourth": dict(
            vocab_size=61, hidden_size=36, num_hidden_layers=5, num_attention_heads=6, num_key_value_heads=2,
            intermediate_size=41, rms_norm_eps=1e-3, rope_parameters=UNROTATED, linear_num_key_heads=2,
            linear_num_value_heads=6, linear_key_head_dim=5, linear_value_head_dim=7,
        ),
        "listed, defaults": dict(
            vocab_size=47, hidden_size=40, num_hidden_layers=3, num_attention_heads=5, intermediate_size=50,
            attention_bias=True, layer_types=[FULL, LINEAR, LINEAR], linear_conv_kernel_dim=3,
            linear_allow_neg_eigval=False, hidden_act="gelu_new", rope_parameters=YARN, tie_word_embeddings=True,
        ),
        "rotated": dict(
            vocab_size=31, hidden_size=28, num_hidden_layers=2, num_attention_heads=7, num_key_value_heads=1,
            intermediate_size=33, rope_parameters=rotation(90.0), linear_num_key_heads=1, linear_num_value_heads=2,
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("layer_types", [LINEAR], "an entry for each of the 5 layers"),
        ("layer_types", ["linear_attend"] * 5, "Did you mean 'linear_attention'?"),
        ("rope_parameters", {"rope_type": "yarnn", "rope_theta": 9.0, "factor": 2.0}, "Did you mean 'yarn'?"),
    )

    @staticmethod
    def draw(data):
        common = draw_llama(data)
        layers, key_heads = common["num_hidden_layers"] + 1, data.draw(st.integers(1, 3), "key heads")
        kinds = lists([FULL, LINEAR], layers).filter(lambda kinds: len(set(kinds)) == 2)
        if data.draw(FLAG, "unrotated"):
            common["rope_parameters"] = UNROTATED
        return common | dict(
            num_hidden_layers=layers, layer_types=kinds, rms_norm_eps=EPS, attention_bias=FLAG,
            linear_num_key_heads=key_heads, linear_allow_neg_eigval=FLAG,
            linear_num_value_heads=key_heads * data.draw(st.integers(1, 3), "value heads of a key head"),
            linear_key_head_dim=st.integers(2, 9), linear_value_head_dim=st.integers(2, 9),
            linear_conv_kernel_dim=st.integers(2, 5),
        )  # fmt: skip
