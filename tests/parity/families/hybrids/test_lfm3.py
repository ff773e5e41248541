"""LFM3 against transformers.

Where convolutions have biases, the reference's windows hold the biases of padding: those configurations are padded on the right.
"""

from __future__ import annotations

from typing import Any

import transformers as hf

from tests.parity.families.draws import EPS, FLAG, HEAD_DIM, WINDOW, lists
from tests.parity.families.hybrids.test_lfm2 import CONV, FULL, Lfm2Tests
from tests.parity.families.llamas import LINEAR, YARN, draw_llama, rotation
from tests.parity.families.sizes import MULTI_HEAD, MULTI_QUERY

SLIDING = "sliding_attention"


def proportional(part: float, theta: float = 500.0) -> dict[str, Any]:
    return {"rope_type": "proportional", "partial_rotary_factor": part, "rope_theta": theta}


class TestLfm3(Lfm2Tests):
    model_class = hf.Lfm3ForCausalLM
    configs = {
        "three kinds": dict(
            vocab_size=61, hidden_size=36, num_hidden_layers=5, num_attention_heads=6, num_key_value_heads=2,
            head_dim=8, intermediate_size=41, norm_eps=1e-3, max_position_embeddings=128, sliding_window=4,
        ),
        "no gate, no second norm": dict(
            MULTI_HEAD, num_hidden_layers=4, head_dim=12, max_position_embeddings=128,
            layer_types=[CONV, SLIDING, FULL, FULL], sliding_window=6, conv_bias=True, conv_L_cache=3,
            attention_bias=True, use_sandwich_norm=False, use_attention_gate=False, tie_word_embeddings=False,
            rope_parameters={FULL: YARN, SLIDING: LINEAR},
        ),
        "gate and biases": dict(
            MULTI_QUERY, num_hidden_layers=3, head_dim=6, max_position_embeddings=128,
            layer_types=[SLIDING, CONV, FULL], sliding_window=3, attention_bias=True,
            rope_parameters={FULL: proportional(0.7), SLIDING: rotation(90.0)},
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("layer_types", [CONV] * 4, "an entry for each of the 5 layers"),
        ("layer_types", ["convo"] * 5, "Did you mean 'conv'?"),
        ("rope_parameters", {FULL: {"rope_type": "yarnn", "factor": 2.0}}, "Did you mean 'yarn'?"),
        ("partial_rotary_factor", 0.5, "must be 1"),
    )
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        common = draw_llama(data)
        del common["hidden_act"]
        whole = {name: value for name, value in common["rope_parameters"].items() if name != "truncate"}
        whole = proportional(0.5) if data.draw(FLAG, "proportional") else whole
        kinds = lists([FULL, SLIDING, CONV], common["num_hidden_layers"])
        return common | dict(
            head_dim=HEAD_DIM, norm_eps=EPS, sliding_window=WINDOW, conv_bias=FLAG, attention_bias=FLAG,
            use_sandwich_norm=FLAG, use_attention_gate=FLAG, layer_types=kinds.filter(lambda kinds: {*kinds} != {CONV}),
            rope_parameters={FULL: whole, SLIDING: rotation(70.0)},
        )  # fmt: skip
