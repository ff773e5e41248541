"""HyperCLOVA X SEED against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.decoders.test_granite import CONFIGS, REFUSALS, draw_granite
from tests.parity.families.draws import FLAG, HEAD_DIM
from tests.parity.families.llamas import LlamaTests


class TestHyperClovaX(LlamaTests):
    model_class = hf.HyperCLOVAXForCausalLM
    configs = {
        "norms after": {**CONFIGS["grouped"], "head_dim": 8},
        "norms before, tied": {
            **CONFIGS["biases, tied"], "use_post_norm": False, "mlp_bias": True, "attention_multiplier": None,
        },
    }  # fmt: skip
    heads = ("Model",)
    refusals = (REFUSALS[0], REFUSALS[2])

    @staticmethod
    def draw(data):
        scales = st.sampled_from([None, 0.25])
        return draw_granite(data) | dict(
            mlp_bias=FLAG, use_post_norm=FLAG, head_dim=HEAD_DIM, attention_multiplier=scales
        )
