"""CWM against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, HEAD_DIM, WINDOW
from tests.parity.families.llamas import LLAMA3, LlamaTests, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD

FULL, SLIDING = "full_attention", "sliding_attention"


class TestCwm(LlamaTests):
    model_class = hf.CwmForCausalLM
    configs = {
        "one of four": dict(
            GROUPED, num_hidden_layers=5, head_dim=12, rms_norm_eps=1e-3, sliding_window=4, rope_parameters=LLAMA3,
        ),
        "stated, tied": dict(
            MULTI_HEAD, head_dim=8, hidden_act="gelu", tie_word_embeddings=True, sliding_window=7,
            layer_types=[FULL, SLIDING], rope_parameters=rotation(500.0),
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("layer_types", [FULL] * 4, "each of the 5 layers"),
        ("sliding_window", None, "must be a number"),
        ("mlp_bias", True, "mlp_bias: must be false"),
    )
    drawn = {"length": 17}
    draws = dict(rms_norm_eps=EPS, head_dim=HEAD_DIM, sliding_window=WINDOW, layer_types=st.none())
