"""VaultGemma against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, HEAD_DIM, WINDOW
from tests.parity.families.llamas import LlamaTests, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD

FULL, SLIDING = "full_attention", "sliding_attention"


class TestVaultGemma(LlamaTests):
    model_class = hf.VaultGemmaForCausalLM
    configs = {
        "every other": dict(GROUPED, head_dim=12, sliding_window=4, rope_parameters=rotation(500.0)),
        "no caps": dict(
            MULTI_HEAD, head_dim=8, attn_logit_softcapping=None, final_logit_softcapping=None,
            query_pre_attn_scalar=40, layer_types=[FULL, FULL], tie_word_embeddings=False,
            rope_parameters=rotation(500.0),
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (("layer_types", [FULL] * 4, "each of the 3 layers"),)
    drawn = {"length": 17}
    draws = dict(
        rms_norm_eps=EPS, head_dim=HEAD_DIM, sliding_window=WINDOW, query_pre_attn_scalar=st.integers(4, 64),
        attn_logit_softcapping=st.sampled_from([None, 20.0]), hidden_act=st.just("gelu"),
    )  # fmt: skip
