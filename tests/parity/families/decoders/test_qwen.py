"""Qwen2 and Qwen3 against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, HEAD_DIM
from tests.parity.families.family import FamilyTests
from tests.parity.families.llamas import ALL, LLAMA3, YARN, draw_llama, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config

FULL, SLIDING = "full_attention", "sliding_attention"

CONFIGS = {
    "windows above": dict(
        GROUPED, num_hidden_layers=4, rms_norm_eps=1e-3, max_position_embeddings=128, use_sliding_window=True,
        sliding_window=4, max_window_layers=3, tie_word_embeddings=True, rope_parameters=rotation(500.0),
    ),
    "windows everywhere": dict(
        MULTI_HEAD, rms_norm_eps=1e-5, max_position_embeddings=128, hidden_act="gelu_new", use_sliding_window=True,
        sliding_window=7, max_window_layers=0, rope_parameters=YARN,
    ),
    "windows not used": dict(
        MULTI_QUERY, num_hidden_layers=2, max_position_embeddings=128, sliding_window=5, max_window_layers=1,
        rope_parameters=LLAMA3,
    ),
    "windows by layer": dict(
        vocab_size=31, hidden_size=24, num_hidden_layers=5, num_attention_heads=6, num_key_value_heads=3,
        intermediate_size=33, max_position_embeddings=128, use_sliding_window=True, sliding_window=3,
        layer_types=[SLIDING, FULL, SLIDING, FULL, SLIDING], rope_parameters=rotation(30.0),
    ),
}  # fmt: skip
MORE = {
    "windows above": {"head_dim": 14, "attention_bias": True},
    "windows everywhere": {"head_dim": 8},
    "windows not used": {"head_dim": 16},
    "windows by layer": {"head_dim": 4, "attention_bias": True},
}
"""Further fields of Qwen3."""


REFUSALS = (
    ("hidden_act", "geglu", "Did you mean 'gelu'?"),
    ("rope_parameters", {"rope_type": "mrope", "mrope_section": [2, 3, 3]}, "not supported"),
    ("layer_types", [SLIDING, FULL], "each of the 4 layers"),
    ("layer_types", [FULL, FULL, FULL, "chunked_attention"], "must have supported kinds only"),
    ("use_sliding_window", False, "sliding_attention without a window"),
    ("use_mrope", True, "use_mrope"),
)


def draw_windows(data, layers: int):
    if not data.draw(st.booleans(), "windows"):
        return {"max_window_layers": data.draw(st.integers(0, 4), "max_window_layers")}
    fields = {"use_sliding_window": True, "sliding_window": data.draw(st.integers(2, 15), "window")}
    if data.draw(st.booleans(), "layer_types"):
        kinds = st.lists(st.sampled_from([FULL, SLIDING]), min_size=layers, max_size=layers)
        return {**fields, "layer_types": data.draw(kinds, "kinds")}
    return fields | dict(max_window_layers=st.integers(0, layers))


def draw_qwen(data) -> dict:
    common = draw_llama(data)
    windows = draw_windows(data, common["num_hidden_layers"])
    return common | windows | dict(rms_norm_eps=EPS)


class TestQwen2(FamilyTests):
    model_class = hf.Qwen2ForCausalLM
    configs = CONFIGS
    heads = ALL
    refusals = REFUSALS
    drawn = {"length": 17}
    draw = staticmethod(draw_qwen)


class TestQwen3(FamilyTests):
    model_class = hf.Qwen3ForCausalLM
    configs = {name: {**values, **MORE[name]} for name, values in CONFIGS.items()}
    heads = ALL
    of_others = ("windows by layer",)
    refusals = REFUSALS
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        bias = data.draw(st.booleans(), "attention_bias")
        return draw_qwen(data) | dict(head_dim=HEAD_DIM, attention_bias=bias)


def test_the_first_configs_say_windows_by_a_number_of_layers():
    first = {
        "model_type": "qwen2", "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_hidden_layers": 6, "intermediate_size": 40, "vocab_size": 90, "max_window_layers": 4,
        "sliding_window": 16, "use_sliding_window": True, "rope_theta": 1000000.0,
    }  # fmt: skip

    def windows(data):
        stack = spec_of_config(Config(data, "config.json"), name="tiny").decoder
        return [block.attention.window for block in stack.layer_blocks()]

    assert windows(first) == [None] * 4 + [16] * 2
    assert windows({**first, "use_sliding_window": False}) == [None] * 6
    assert windows({**first, "max_window_layers": 28}) == [None] * 6
