"""ViT and the models with its layers against transformers."""

from __future__ import annotations

import pytest
import transformers as hf
from transformers.models.vit_mae import modeling_vit_mae

from tests.parity.families.draws import FLAG
from tests.parity.families.family import RightPaddedTests
from tests.parity.families.vision_tests import draw_patches
from tests.zoo.tiny import BLOCK, vit
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config
from zoo.families.common.template import UnfitError
from zoo.families.registry import family


class TestViT(RightPaddedTests):
    model_class = hf.ViTForImageClassification
    defaults = {"num_labels": 5}
    configs = {
        "remainder": dict(
            hidden_size=21, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17, hidden_act="gelu_new",
            layer_norm_eps=1e-3, image_size=14, patch_size=4, num_channels=3, qkv_bias=True, pooler_act="relu",
        ),
        "gray": dict(
            hidden_size=40, num_hidden_layers=1, num_attention_heads=5, intermediate_size=96, hidden_act="relu",
            layer_norm_eps=1e-6, image_size=9, patch_size=3, num_channels=1, qkv_bias=False,
        ),
        "one patch": dict(
            hidden_size=12, num_hidden_layers=2, num_attention_heads=2, intermediate_size=30, hidden_act="gelu",
            layer_norm_eps=1e-12, image_size=8, patch_size=8, num_channels=4, hidden_dropout_prob=0.2,
            attention_probs_dropout_prob=0.3,
        ),
    }  # fmt: skip
    heads = ("Model",)
    of_others = tuple(configs)
    refusals = (
        ("image_size", [32, 24], "must be a whole number", "square"),
        ("pooler_output_size", 9, "must be 21", "keeps the width"),
        ("hidden_act", "gellu", "is not supported", "gelu"),
        ("num_register_tokens", 4, "unsupported fields"),
        ("architectures", ["ViTForMaskedImageModeling"], "must name a supported class", "ViTForImageClassification"),
    )  # fmt: skip

    @staticmethod
    def draw(data):
        return draw_patches(data, qkv_bias=FLAG)


class TestMSN(RightPaddedTests):
    model_class = hf.ViTMSNForImageClassification
    defaults = {"num_labels": 5}
    configs = {
        name: {field: value for field, value in values.items() if field != "pooler_act"}
        for name, values in TestViT.configs.items()
    }
    heads = ("Model",)
    refusals = (("hidden_act", "gellu", "is not supported", "gelu"),)

    @staticmethod
    def draw(data):
        return draw_patches(data, qkv_bias=FLAG)


class TestIJepa(RightPaddedTests):
    model_class = hf.IJepaForImageClassification
    defaults = {"num_labels": 5}
    configs = TestViT.configs
    heads = ("Model",)
    refusals = (("pooler_output_size", 9, "must be 21", "keeps the width"),)

    @staticmethod
    def draw(data):
        return draw_patches(data, qkv_bias=FLAG)


@pytest.fixture(scope="module", autouse=True)
def _all_patches_in_their_order():
    """The reference leaves out patches at random and shuffles the others, even where all are kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            modeling_vit_mae.ViTMAEEmbeddings, "random_masking", lambda self, x, noise=None: (x, None, None)
        )
        yield


class TestMAE(RightPaddedTests):
    model_class = hf.ViTMAEModel
    configs = {
        name: {field: value for field, value in values.items() if field != "pooler_act"}
        for name, values in TestViT.configs.items()
    }
    refusals = (("architectures", ["ViTMAEForPreTraining"], "paints the patches", "ViTMAEModel"),)

    @staticmethod
    def draw(data):
        return draw_patches(data, qkv_bias=FLAG)


def test_sides_of_squares_may_be_given_twice():
    given_once = Config({"model_type": "vit", "image_size": 32, "patch_size": 8}, "config.json")
    given_twice = Config({"model_type": "vit", "image_size": [32, 32], "patch_size": [8, 8]}, "config.json")
    assert spec_of_config(given_once, name="vit") == spec_of_config(given_twice, name="vit")


def test_biases_of_another_kind_of_attention_have_no_field():
    latent = {"kind": "latent", "heads": 2, "kv_rank": 4, "head_dim": 4, "value_dim": 4, "rope_dim": 2}
    spec = vit(encoder={"layers": 1, "block": {**BLOCK, "attention": latent}})
    with pytest.raises(UnfitError, match=r"^attention kind latent$"):
        family("vit").config(spec, "ViTForImageClassification")
