"""OLMo 3 against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, WINDOW
from tests.parity.families.llamas import LINEAR, YARN, LlamaTests, draw_llama, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config

FULL, SLIDING = "full_attention", "sliding_attention"


def by_kind(full: dict, theta: float) -> dict:
    return {FULL: full, SLIDING: rotation(theta)}


class TestOlmo3(LlamaTests):
    model_class = hf.Olmo3ForCausalLM
    configs = {
        "every fourth": dict(
            GROUPED, num_hidden_layers=5, rms_norm_eps=1e-3, sliding_window=4, rope_parameters=by_kind(YARN, 500.0),
        ),
        "biases, tied": dict(
            MULTI_HEAD, attention_bias=True, hidden_act="gelu_new", tie_word_embeddings=True, sliding_window=7,
            layer_types=[FULL, SLIDING], rope_parameters=by_kind(LINEAR, 1000.0),
        ),
        "no window": dict(
            MULTI_QUERY, num_hidden_layers=2, layer_types=[FULL, FULL], rope_parameters=by_kind(rotation(90.0), 90.0),
        ),
    }  # fmt: skip
    heads = ("Model", "ForSequenceClassification")
    refusals = (
        ("hidden_act", "swiglu", "Did you mean 'silu'?"),
        ("rope_parameters", {FULL: {"rope_type": "linar", "factor": 2.0}}, "Did you mean 'linear'?"),
        ("layer_types", [FULL] * 4, "each of the 5 layers"),
        ("sliding_window", None, "must be a number"),
        ("partial_rotary_factor", 0.5, "must be 1"),
    )
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        common = draw_llama(data)
        common["rope_parameters"] = {
            name: value for name, value in common["rope_parameters"].items() if name != "truncate"
        }  # refused: the reference rounds
        theta = data.draw(st.sampled_from([100.0, 1e4]), "theta of windows")
        return common | dict(
            rope_parameters=by_kind(common["rope_parameters"], theta), rms_norm_eps=EPS, attention_bias=FLAG,
            sliding_window=WINDOW,
        )  # fmt: skip


def test_scaling_stated_once_is_that_of_layers_without_a_window():
    data = {**TestOlmo3.configured("every fourth").to_dict(), "rope_theta": 300.0}
    data["rope_scaling"] = {**data.pop("rope_parameters")[FULL]}
    del data["rope_scaling"]["rope_theta"]
    spec = spec_of_config(Config(data, "config.json"), name="tiny")
    assert spec.decoder is not None
    own = [block.attention.model_dump()["position"] for block in spec.decoder.layer_blocks()]
    assert [position and (position["theta"], position["scaling"]) for position in own] == [
        *[(500000.0, None)] * 3, None, (500000.0, None),
    ]  # fmt: skip
    common = spec.model_dump()["position"]
    assert (common["theta"], common["scaling"]["kind"]) == (300.0, "yarn")
