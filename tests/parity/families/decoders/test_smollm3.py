"""SmolLM3 against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, LAYERS
from tests.parity.families.family import FamilyTests
from tests.parity.families.llamas import ALL, YARN, draw_llama, rotation
from tests.parity.families.sizes import MULTI_HEAD, MULTI_QUERY
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config

FULL, SLIDING = "full_attention", "sliding_attention"


def test_the_interval_counts_where_no_list_says_which_layers_rotate():
    data = TestSmolLM3.configured("every fourth").to_dict()
    del data["no_rope_layers"], data["layer_types"]
    blocks = spec_of_config(Config(data, "config.json"), name="tiny").decoder.layer_blocks()
    own = [block.attention.position for block in blocks]
    assert [position and position.kind for position in own] == [None, None, None, "none", None]


class TestSmolLM3(FamilyTests):
    model_class = hf.SmolLM3ForCausalLM
    configs = {
        "every fourth": dict(
            vocab_size=61, hidden_size=36, num_hidden_layers=5, num_attention_heads=6, num_key_value_heads=2,
            intermediate_size=41, rms_norm_eps=1e-3, max_position_embeddings=128, attention_bias=True, mlp_bias=True,
            tie_word_embeddings=False, rope_parameters=rotation(500.0),
        ),
        "windows where nothing rotates": dict(
            MULTI_HEAD, num_hidden_layers=4, rms_norm_eps=1e-5, max_position_embeddings=128, hidden_act="gelu_new",
            use_sliding_window=True, sliding_window=4, no_rope_layer_interval=2, rope_parameters=YARN,
        ),
        "every kind of layer": dict(
            MULTI_QUERY, num_hidden_layers=4, max_position_embeddings=128, use_sliding_window=True, sliding_window=5,
            no_rope_layers=[1, 0, 1, 0], layer_types=[SLIDING, SLIDING, FULL, FULL], rope_parameters=rotation(90.0),
        ),
    }  # fmt: skip
    heads = ALL
    refusals = [
        ("hidden_act", "relu3", "Did you mean 'relu'?"),
        ("rope_parameters", {"rope_type": "yarnn", "factor": 2.0}, "Did you mean 'yarn'?"),
        ("no_rope_layers", [1, 0], "each of the 5 layers"),
        ("no_rope_layers", [1, 0, 1, 2, 1], "0 or 1"),
        ("layer_types", [FULL] * 4 + [SLIDING], "without a window"),
        ("layer_types", [FULL] * 4, "each of the 5 layers"),
        ("nope_scaling", 2.0, "unsupported fields"),
    ]
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        common = draw_llama(data)
        layers = common["num_hidden_layers"]
        windows = data.draw(st.booleans(), "windows")
        rotated = st.lists(st.integers(0, 1), min_size=layers, max_size=layers)
        return dict(
            **common, rms_norm_eps=EPS, attention_bias=FLAG, mlp_bias=FLAG, no_rope_layers=st.none() | rotated,
            no_rope_layer_interval=LAYERS, use_sliding_window=windows,
            sliding_window=data.draw(st.integers(2, 15), "window") if windows else None,
        )  # fmt: skip
