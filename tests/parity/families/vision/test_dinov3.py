"""DINOv3's vision transformers against transformers."""

from __future__ import annotations

import pytest
import torch
import transformers as hf
from hypothesis import strategies as st

from specs.language.load import load
from tests.parity.families.draws import FLAG, flags
from tests.parity.families.family import RightPaddedTests
from tests.parity.families.vision_tests import draw_patches
from zoo.configs.exporting import write_config

MASK, REGISTERS = "embeddings.mask_token", "embeddings.register_tokens"
"""Training alone reads the mask token; without registers, their tensor has no values."""


class TestDINOv3(RightPaddedTests):
    model_class = hf.DINOv3ViTModel
    configs = {
        "remainder": dict(
            hidden_size=24, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17, hidden_act="gelu_new",
            layer_norm_eps=1e-3, image_size=14, patch_size=4, layerscale_value=1e-5, num_register_tokens=2,
        ),
        "gated": dict(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=40, hidden_act="silu",
            image_size=9, patch_size=2, num_channels=1, use_gated_mlp=True, query_bias=False, value_bias=False,
            mlp_bias=False, num_register_tokens=4, rope_theta=37.0, attention_dropout=0.1,
        ),
        "one patch": dict(
            hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=30, hidden_act="relu",
            image_size=8, patch_size=8, num_channels=4, key_bias=True, proj_bias=False,
        ),
    }  # fmt: skip
    refusals = (
        ("image_size", [32, 24], "must be a whole number", "square"),
        ("drop_path_rate", 0.1, "must be 0.0", "without some of the layers"),
        ("rope_parameters", {"rope_type": "yarn"}, "unsupported fields"),
        ("architectures", ["DINOv3ViTBackbone"], "must name a supported class", "DINOv3ViTModel"),
    )

    def check(self, model_class, config, directory, **options):
        unread = (MASK,) if config.num_register_tokens else (MASK, REGISTERS)
        return super().check(model_class, config, directory, without=unread, **options)

    @staticmethod
    def draw(data):
        heads = data.draw(st.integers(1, 4), "heads")
        return draw_patches(
            data, num_attention_heads=heads, hidden_size=heads * data.draw(st.sampled_from([4, 8, 12, 16]), "head"),
            num_register_tokens=st.sampled_from([0, 1, 4]), rope_theta=st.sampled_from([10.0, 100.0, 3000.0]),
            layerscale_value=st.sampled_from([1e-5, 1.0]), use_gated_mlp=FLAG,
            **flags(*(f"{name}_bias" for name in ("query", "key", "value", "proj", "mlp"))),
        )  # fmt: skip


SIZES = ("small", "small-plus", "base", "large", "huge-plus", "7b")


@pytest.mark.parametrize("size", SIZES)
def test_published_counts_are_ours_and_the_mask_token(size):
    spec = load(f"dinov3-{size}-16")
    with torch.device("meta"):
        reference = hf.DINOv3ViTModel(hf.DINOv3ViTConfig.from_dict(write_config(spec)))
    count = sum(parameter.numel() for parameter in reference.parameters())
    assert count == (spec.expect.parameters or 0) + spec.d_model
