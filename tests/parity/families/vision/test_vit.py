"""ViT against transformers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import ViTConfig, ViTForImageClassification, ViTModel

from tests.parity.families.harness import check
from tests.parity.reference import ACTIVATIONS
from tests.thinned import one_in
from tests.zoo.tiny import BLOCK, vit
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config, ConfigError
from zoo.families.common.template import UnfitError
from zoo.families.registry import family

CONFIGS = {
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


@one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    check(ViTForImageClassification, ViTConfig(**CONFIGS[name], num_labels=5), tmp_path, sides=("right",))


@pytest.mark.parametrize("name", CONFIGS)
def test_the_body_alone(name, tmp_path):
    check(ViTModel, ViTConfig(**CONFIGS[name]), tmp_path, sides=("right",))


def test_sides_of_squares_may_be_given_twice():
    given_once = Config({"model_type": "vit", "image_size": 32, "patch_size": 8}, "config.json")
    given_twice = Config({"model_type": "vit", "image_size": [32, 32], "patch_size": [8, 8]}, "config.json")
    assert spec_of_config(given_once, name="vit") == spec_of_config(given_twice, name="vit")


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"image_size": [32, 24]}, "image_size: must be a whole number", "square"),
    ({"pooler_output_size": 9}, "pooler_output_size: must be 768", "keeps the width"),
    ({"hidden_act": "gellu"}, "hidden_act: is not supported", "gelu"),
    ({"num_register_tokens": 4}, "unsupported fields", "num_register_tokens"),
    ({"architectures": ["ViTForMaskedImageModeling"]}, "must name a supported class", "ViTForImageClassification"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "rule", "remedy"), REFUSED, ids=[next(iter(case[0])) for case in REFUSED])
def test_unsupported_values_and_fields_are_refused(change, rule, remedy):
    config = Config({"model_type": "vit", **change}, "config.json")
    with pytest.raises(ConfigError, match=rule) as caught:
        spec_of_config(config, name="vit", strict=True)
    assert remedy in str(caught.value)


def test_biases_of_another_kind_of_attention_have_no_field():
    latent = {"kind": "latent", "heads": 2, "kv_rank": 4, "head_dim": 4, "value_dim": 4, "rope_dim": 2}
    spec = vit(encoder={"layers": 1, "block": {**BLOCK, "attention": latent}})
    with pytest.raises(UnfitError, match=r"^attention kind latent$"):
        family("vit").config(spec, "ViTForImageClassification")


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    heads = data.draw(st.integers(1, 6), "heads")
    patch = data.draw(st.integers(1, 6), "patch_size")
    config = ViTConfig(
        hidden_size=heads * data.draw(st.integers(2, 8), "head_width"),
        num_hidden_layers=data.draw(st.integers(1, 3), "layers"),
        num_attention_heads=heads,
        intermediate_size=data.draw(st.integers(1, 60), "hidden"),
        hidden_act=data.draw(st.sampled_from(list(ACTIVATIONS)), "activation"),
        layer_norm_eps=data.draw(st.sampled_from([1e-12, 1e-2]), "eps"),
        image_size=patch + data.draw(st.integers(0, 12), "more"),
        patch_size=patch,
        num_channels=data.draw(st.integers(1, 4), "channels"),
        qkv_bias=data.draw(st.booleans(), "bias"),
    )
    model_class = data.draw(st.sampled_from([ViTModel, ViTForImageClassification]), "class")
    directory, seed = tmp_path_factory.mktemp("vit"), data.draw(st.integers(0, 99), "seed")
    check(model_class, config, directory, seed=seed, sides=("right",), onnx=seed % 5 == 0, fuzzed=True)
