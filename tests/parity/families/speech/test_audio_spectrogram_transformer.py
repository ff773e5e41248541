"""AST against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import FEW_LAYERS, FLAG
from tests.parity.families.family import RightPaddedTests
from tests.parity.families.vision_tests import ACTIVATION


class TestAST(RightPaddedTests):
    model_class = hf.ASTForAudioClassification
    defaults = {"num_labels": 5}
    configs = {
        "overlapping": dict(
            hidden_size=21, num_hidden_layers=2, num_attention_heads=3, intermediate_size=17, hidden_act="gelu_new",
            layer_norm_eps=1e-3, patch_size=5, frequency_stride=3, time_stride=4, max_length=22, num_mel_bins=12,
        ),
        "apart": dict(
            hidden_size=40, num_hidden_layers=1, num_attention_heads=5, intermediate_size=96, hidden_act="relu",
            patch_size=2, frequency_stride=3, time_stride=2, max_length=9, num_mel_bins=8, qkv_bias=False,
        ),
    }  # fmt: skip
    heads = ("Model",)
    of_others = tuple(configs)
    refusals = (
        ("patch_size", [16, 8], "must be a whole number"),
        ("patch_size", 13, "must not exceed num_mel_bins, which is 12"),
        ("hidden_act", "gellu", "is not supported", "gelu"),
    )

    @staticmethod
    def draw(data):
        heads, patch = data.draw(st.integers(1, 6), "heads"), data.draw(st.integers(1, 6), "patch_size")
        size, stride = st.integers(patch, patch + 12), st.integers(1, 6)
        return dict(
            hidden_size=heads * data.draw(st.integers(2, 8), "head_width"), num_hidden_layers=FEW_LAYERS,
            num_attention_heads=heads, intermediate_size=st.integers(1, 60), hidden_act=ACTIVATION, patch_size=patch,
            frequency_stride=stride, time_stride=stride, max_length=size, num_mel_bins=size, qkv_bias=FLAG,
        )  # fmt: skip
