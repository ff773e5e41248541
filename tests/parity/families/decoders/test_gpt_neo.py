"""GPT-Neo against transformers."""

from __future__ import annotations

import pytest
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import ACTIVATION, FLAG, HIDDEN, VOCAB, WINDOW
from tests.parity.families.family import SPECIAL, FamilyTests
from tests.parity.families.llamas import ALL
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError


class TestGPTNeo(FamilyTests):
    model_class = hf.GPTNeoForCausalLM
    defaults = {**SPECIAL, "max_position_embeddings": 29}
    configs = {
        "alternating": dict(
            vocab_size=61, hidden_size=21, num_layers=4, num_heads=3, intermediate_size=17, window_size=5,
            attention_types=[[["global", "local"], 2]], activation_function="relu", layer_norm_epsilon=1e-3,
        ),
        "local first, untied": dict(
            vocab_size=40, hidden_size=32, num_layers=3, num_heads=4, intermediate_size=70, window_size=3,
            attention_types=[[["local"], 2], [["global"], 1]], activation_function="gelu",
            layer_norm_epsilon=1e-6, tie_word_embeddings=False,
        ),
        "global": dict(
            vocab_size=83, hidden_size=20, num_layers=2, num_heads=5, attention_types=[[["global"], 2]],
            layer_norm_epsilon=1e-5,
        ),
    }  # fmt: skip
    heads = ALL
    refusals = (
        ("attention_layers", ["global", "sparse"] * 2, "must have only types global and local"),
        ("num_layers", 5, "each layer of num_layers, which is 5"),
        ("activation_function", "gelu_newer", "Did you mean 'gelu_new'"),
        ("rotary", True, "rotary positions make it a GPT-J"),
    )

    @staticmethod
    def draw(data):
        heads = data.draw(st.integers(1, 7), "heads")
        types = data.draw(st.lists(st.sampled_from(["global", "local"]), min_size=1, max_size=5), "types")
        return dict(
            vocab_size=VOCAB, hidden_size=heads * data.draw(st.integers(3, 9), "head_dim"), num_layers=len(types),
            attention_types=[[types, 1]], window_size=WINDOW, num_heads=heads, intermediate_size=st.none() | HIDDEN,
            activation_function=ACTIVATION, layer_norm_epsilon=st.sampled_from([1e-5, 1e-3, 1e-2]),
            tie_word_embeddings=FLAG,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("types", "said"),
    [
        ([[["global", "sparse"], 2]], "must have only types global and local"),
        ([[["global", "local"], 3]], "must cover num_layers, which is 4"),
        ([[["global"], 3]], "which is 4; it covers 3"),
        ([["global", "local"]], r"must be a list of \[\[types\], times\]"),
    ],
)
def test_types_of_layers_alone_are_checked(types, said):
    data = {**TestGPTNeo.configured("alternating").to_dict(), "attention_types": types}
    del data["attention_layers"]
    with pytest.raises(ConfigError, match=said):
        spec_of_config(Config(data, "config.json"), name="tiny")
