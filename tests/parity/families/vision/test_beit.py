"""BEiT and data2vec for images against transformers."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import FLAG
from tests.parity.families.family import RightPaddedTests
from tests.parity.families.vision_tests import draw_patches


class TestBeit(RightPaddedTests):
    model_class = hf.BeitForImageClassification
    defaults = dict(
        hidden_size=21, num_hidden_layers=2, num_attention_heads=3, intermediate_size=17, hidden_act="gelu_new",
        layer_norm_eps=1e-3, image_size=14, patch_size=4, layer_scale_init_value=1e-5, num_labels=5,
    )  # fmt: skip
    configs = {
        "per layer": dict(use_relative_position_bias=True),
        "shared": dict(use_shared_relative_position_bias=True, use_mean_pooling=False),
        "absolute": dict(use_absolute_position_embeddings=True),
        "none": dict(use_mean_pooling=False),
    }
    heads = ("Model",)
    of_others = tuple(configs)
    of_refusals = "none"
    refusals: ClassVar[Any] = (
        ("image_size", [32, 24], "must be a whole number", "square"),
        ({"use_relative_position_bias": True, "use_shared_relative_position_bias": True}, "use_shared_relative_position_bias: must not", "one of"),
        ({"use_relative_position_bias": True, "use_absolute_position_embeddings": True}, "use_relative_position_bias: must not", "one of"),
        ("architectures", ["BeitForMaskedImageModeling"], "must name a supported class", "BeitModel"),
        ("architectures", ["BeitForSemanticSegmentation"], "must name a supported class", "BeitModel"),
    )  # fmt: skip

    @staticmethod
    def draw(data):
        names = [
            name for position in TestBeit.configs.values() for name in position if name != "use_mean_pooling"
        ]
        position = data.draw(st.sampled_from([{}, *({name: True} for name in names)]), "position")
        scale = st.sampled_from([0.0, 1e-5, 0.1])
        return draw_patches(data, layer_scale_init_value=scale, use_mean_pooling=FLAG, **position)


class TestData2VecVision(TestBeit):
    model_class = hf.Data2VecVisionForImageClassification
    configs = {"per layer": TestBeit.configs["per layer"]}
    heads = ("Model",)
    of_others = ()
    of_refusals = ""
    refusals = (("image_size", [32, 24], "must be a whole number", "square"),)


@pytest.mark.slow
def test_without_layer_scale(tmp_path):
    config = TestBeit.configured("per layer", layer_scale_init_value=0.0)
    assert TestBeit().check(hf.BeitModel, config, tmp_path).encoder.block.layer_scale is None
