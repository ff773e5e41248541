"""Granite with windows and sinks against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.decoders.test_granite import CONFIGS, TestGraniteMoeShared, draw_granite
from tests.parity.families.draws import FLAG, WINDOW, lists
from tests.parity.families.llamas import LlamaTests, rotation

FULL, SLIDING = "full_attention", "sliding_attention"


def draw_windows(data, values) -> dict:
    """Any windows, and layers that do not rotate."""
    depth, theta = values["num_hidden_layers"], data.draw(st.sampled_from([100.0, 1e4]), "theta")
    return values | dict(
        sliding_window=WINDOW, layer_types=lists((FULL, SLIDING), depth), rope_parameters=rotation(theta),
        layer_rope_theta=lists((0, theta), depth), max_position_embeddings=256,
    )  # fmt: skip


class TestGraniteSwa(LlamaTests):
    model_class = hf.GraniteSWAForCausalLM
    configs = {
        "every fourth": {**CONFIGS["grouped"], "num_hidden_layers": 5, "sliding_window": 4},
        "some rotate, tied": {
            **CONFIGS["biases, tied"], "num_hidden_layers": 3, "sliding_window": 3, "rope_parameters": rotation(500.0),
            "layer_types": [SLIDING, FULL, SLIDING], "layer_rope_theta": [90.0, 0, 90.0],
        },
        "none rotates": {**CONFIGS["one factor each"], "sliding_window": 3, "layer_rope_theta": [0]},
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("layer_rope_theta", [1.0] * 4, "each of the 5 layers"),
        ("layer_rope_theta", [1.0, 2.0, 0, 0, 0], "must have one number besides 0"),
        ("layer_rope_theta", ["no"], "must be a list of numbers"),
    )
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        return draw_windows(data, draw_granite(data)) | dict(mlp_bias=FLAG)


class TestGraniteMoeSwa(LlamaTests):
    model_class = hf.GraniteMoeSWAForCausalLM
    configs = {
        "every fourth": {**TestGraniteMoeShared.configs["grouped"], "num_hidden_layers": 5, "sliding_window": 4},
    }  # fmt: skip
    heads = ("Model",)
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        return draw_windows(data, TestGraniteMoeShared.draw(data))
