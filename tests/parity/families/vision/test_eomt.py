"""EoMT against transformers."""

from __future__ import annotations

from typing import Any, ClassVar

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import FLAG
from tests.parity.families.family import RightPaddedTests
from tests.parity.families.vision_tests import draw_patches

CONFIGS: dict[str, Any] = {
    "remainder": dict(
        hidden_size=21, num_hidden_layers=3, num_attention_heads=3, mlp_ratio=2, hidden_act="gelu_new",
        layer_norm_eps=1e-3, image_size=14, patch_size=4, num_channels=3, layerscale_value=1e-5, num_blocks=1, num_queries=5,
        num_register_tokens=1, num_upscale_blocks=1, num_labels=3,
    ),
    "gated": dict(
        hidden_size=12, num_hidden_layers=2, num_attention_heads=2, mlp_ratio=4, use_swiglu_ffn=True, hidden_dropout_prob=0.2,
        image_size=8, patch_size=4, num_channels=1, num_blocks=2, num_queries=1, num_register_tokens=2, num_labels=7,
    ),
}  # fmt: skip


class TestEomt(RightPaddedTests):
    model_class = hf.EomtForUniversalSegmentation
    configs: ClassVar[Any] = CONFIGS
    refusals: ClassVar[Any] = (
        ("image_size", [32, 24], "must be a whole number", "square"),
        ({"num_blocks": 4}, "queries.layers: must be at most 3, the number of layers"),
        ("drop_path_rate", 0.1, "must be 0.0", "without some of the layers"),
    )

    @staticmethod
    def prepare(reference, seed):
        """As training ends."""
        reference.attn_mask_probs.zero_()

    @staticmethod
    def draw(data):
        fields = draw_patches(
            data, mlp_ratio=st.integers(1, 5), use_swiglu_ffn=FLAG, layerscale_value=st.sampled_from([1e-5, 0.1, 1.0]),
            num_blocks=1, num_queries=st.integers(1, 9), num_register_tokens=st.integers(1, 4),
            num_upscale_blocks=st.integers(0, 3), num_labels=st.integers(1, 9),
        )  # fmt: skip
        return {name: value for name, value in fields.items() if name != "intermediate_size"}
