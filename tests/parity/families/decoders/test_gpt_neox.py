"""GPT-NeoX and Pythia against transformers."""

from __future__ import annotations

from typing import Any

import pytest
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import ACTIVATION, FLAG, HIDDEN, LAYERS, VOCAB
from tests.parity.families.harness import check
from tests.parity.families.llamas import ALL, DYNAMIC, LLAMA3, LlamaTests
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config

LINEAR = {"rope_type": "linear", "rope_theta": 1000.0, "factor": 2.5, "partial_rotary_factor": 0.5}
YARN = {
    "rope_type": "yarn", "rope_theta": 700.0, "factor": 4.0, "original_max_position_embeddings": 32,
    "partial_rotary_factor": 1.0,
}  # fmt: skip
PLAIN = {"rope_type": "default", "rope_theta": 300.0}


@pytest.mark.slow
def test_beyond_the_context_that_dynamic_scaling_starts_from(tmp_path):
    rope = {**DYNAMIC, "partial_rotary_factor": 0.4}
    config = TestGPTNeoX.configured("odd-heads", **{"max_position_embeddings": 8, "rope_parameters": rope})
    check(hf.GPTNeoXForCausalLM, config, tmp_path, length=13, steps=False)


def test_the_old_spelling_of_rotary_positions():
    fields = {"hidden_size": 40, "num_attention_heads": 2, "rotary_pct": 0.2, "rotary_emb_base": 700}
    spec = spec_of_config(Config({"model_type": "gpt_neox", **fields}, "config.json"), name="tiny")
    position: Any = spec.position
    assert (position.theta, position.dimensions) == (700.0, 4)


class TestGPTNeoX(LlamaTests):
    model_class = hf.GPTNeoXForCausalLM
    configs = {
        "odd-heads": dict(
            vocab_size=61, hidden_size=30, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17,
            hidden_act="relu", layer_norm_eps=1e-3,
            rope_parameters={"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.4},
        ),
        "sequential, tied": dict(
            vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=70,
            hidden_act="gelu_new", layer_norm_eps=1e-6, use_parallel_residual=False, attention_bias=False,
            tie_word_embeddings=True, rope_parameters=LINEAR,
        ),
        "yarn": dict(
            vocab_size=83, hidden_size=40, num_hidden_layers=1, num_attention_heads=5, intermediate_size=33,
            rope_parameters=YARN,
        ),
    }  # fmt: skip
    heads = ALL
    refusals = (
        ("is_decoder", True, "must be false"),
        ("hidden_act", "geluu", "Did you mean 'gelu'"),
        ("rope_parameters", {"rope_type": "yarm", "factor": 2.0}, "Did you mean 'yarn'"),
        ("num_key_value_heads", 1, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        heads, width = data.draw(st.integers(1, 7), "heads"), data.draw(st.integers(4, 9), "head_dim")
        rotated = 2 * data.draw(st.integers(2, width // 2), "pairs")
        rope = data.draw(st.sampled_from([LINEAR, DYNAMIC, LLAMA3, YARN, PLAIN]), "rope")
        return dict(
            vocab_size=VOCAB, hidden_size=heads * width, num_hidden_layers=LAYERS, num_attention_heads=heads,
            intermediate_size=HIDDEN, hidden_act=ACTIVATION, layer_norm_eps=st.sampled_from([1e-5, 1e-3, 1e-2]),
            use_parallel_residual=FLAG, attention_bias=FLAG, tie_word_embeddings=FLAG,
            rope_parameters={**rope, "partial_rotary_factor": (rotated + 0.5) / width},
        )  # fmt: skip
