"""DeiT with a distillation token against transformers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    DeiTConfig,
    DeiTForImageClassification,
    DeiTForImageClassificationWithTeacher,
    DeiTModel,
)

from specs.language.load import load
from tests.parity.families.harness import check
from tests.parity.families.vision.test_vit import CONFIGS
from tests.parity.reference import ACTIVATIONS
from tests.thinned import one_in
from zoo.configs.exporting import write_config
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config, ConfigError

CLASSES = (DeiTForImageClassificationWithTeacher, DeiTForImageClassification, DeiTModel)


@one_in(4)
@pytest.mark.parametrize("model_class", CLASSES)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, model_class, tmp_path):
    check(model_class, DeiTConfig(**CONFIGS[name], num_labels=5), tmp_path, sides=("right",))


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"image_size": [32, 24]}, "image_size: must be a whole number", "square"),
    ({"pooler_output_size": 9}, "pooler_output_size: must be 768", "keeps the width"),
    ({"architectures": ["DeiTForMaskedImageModeling"]}, "must name a supported class", "DeiTForImageClassification"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "rule", "remedy"), REFUSED, ids=[next(iter(case[0])) for case in REFUSED])
def test_unsupported_values_and_classes_are_refused(change, rule, remedy):
    config = Config({"model_type": "deit", **change}, "config.json")
    with pytest.raises(ConfigError, match=rule) as caught:
        spec_of_config(config, name="deit", strict=True)
    assert remedy in str(caught.value)


def test_a_distillation_token_makes_a_vit_a_deit():
    assert write_config(load("deit-tiny-16"))["model_type"] == "vit"
    assert write_config(load("deit-tiny-distilled-16"))["model_type"] == "deit"


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    heads = data.draw(st.integers(1, 6), "heads")
    patch = data.draw(st.integers(1, 6), "patch_size")
    config = DeiTConfig(
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
    model_class = data.draw(st.sampled_from(CLASSES), "class")
    directory, seed = tmp_path_factory.mktemp("deit"), data.draw(st.integers(0, 99), "seed")
    check(model_class, config, directory, seed=seed, sides=("right",), onnx=seed % 5 == 0, fuzzed=True)
