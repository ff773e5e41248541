"""BEiT against transformers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BeitConfig, BeitForImageClassification, BeitModel

from tests.parity.families.harness import check
from tests.parity.reference import ACTIVATIONS
from tests.thinned import one_in
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config, ConfigError

POSITIONS: dict[str, dict[str, bool]] = {
    "per layer": dict(use_relative_position_bias=True),
    "shared": dict(use_shared_relative_position_bias=True, use_mean_pooling=False),
    "absolute": dict(use_absolute_position_embeddings=True),
    "none": dict(use_mean_pooling=False),
}
CONFIG: dict[str, Any] = dict(
    hidden_size=21, num_hidden_layers=2, num_attention_heads=3, intermediate_size=17, hidden_act="gelu_new",
    layer_norm_eps=1e-3, image_size=14, patch_size=4, layer_scale_init_value=1e-5, num_labels=5,
)  # fmt: skip
CLASSES = (BeitForImageClassification, BeitModel)


@one_in(3)
@pytest.mark.parametrize("model_class", CLASSES)
@pytest.mark.parametrize("name", POSITIONS)
def test_configuration(name, model_class, tmp_path):
    check(model_class, BeitConfig(**CONFIG, **POSITIONS[name]), tmp_path, sides=("right",))


@pytest.mark.slow
def test_without_layer_scale(tmp_path):
    config = BeitConfig(**{**CONFIG, "layer_scale_init_value": 0.0}, **POSITIONS["per layer"])
    assert check(BeitModel, config, tmp_path, sides=("right",)).encoder.block.layer_scale is None


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"image_size": [32, 24]}, "image_size: must be a whole number", "square"),
    ({"use_relative_position_bias": True, "use_shared_relative_position_bias": True}, "use_shared_relative_position_bias: must not", "one of"),
    ({"use_relative_position_bias": True, "use_absolute_position_embeddings": True}, "use_relative_position_bias: must not", "one of"),
    ({"architectures": ["BeitForMaskedImageModeling"]}, "must name a supported class", "BeitModel"),
    ({"architectures": ["BeitForSemanticSegmentation"]}, "must name a supported class", "BeitModel"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "rule", "remedy"), REFUSED, ids=[str(case[0]) for case in REFUSED])
def test_unsupported_values_and_classes_are_refused(change, rule, remedy):
    config = Config({"model_type": "beit", **change}, "config.json")
    with pytest.raises(ConfigError, match=rule) as caught:
        spec_of_config(config, name="beit", strict=True)
    assert remedy in str(caught.value)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    heads = data.draw(st.integers(1, 6), "heads")
    patch = data.draw(st.integers(1, 6), "patch_size")
    position = data.draw(
        st.sampled_from(
            [
                {},
                *({name: True} for each in POSITIONS.values() for name in each if name != "use_mean_pooling"),
            ]
        ),
        "position",
    )
    config = BeitConfig(
        hidden_size=heads * data.draw(st.integers(2, 8), "head_width"),
        num_hidden_layers=data.draw(st.integers(1, 3), "layers"),
        num_attention_heads=heads,
        intermediate_size=data.draw(st.integers(1, 60), "hidden"),
        hidden_act=data.draw(st.sampled_from(list(ACTIVATIONS)), "activation"),
        layer_norm_eps=data.draw(st.sampled_from([1e-12, 1e-2]), "eps"),
        image_size=patch + data.draw(st.integers(0, 12), "more"),
        patch_size=patch,
        num_channels=data.draw(st.integers(1, 4), "channels"),
        layer_scale_init_value=data.draw(st.sampled_from([0.0, 1e-5, 0.1]), "layer_scale_init_value"),
        use_mean_pooling=data.draw(st.booleans(), "use_mean_pooling"),
        **position,
    )
    model_class = data.draw(st.sampled_from(CLASSES), "class")
    directory, seed = tmp_path_factory.mktemp("beit"), data.draw(st.integers(0, 99), "seed")
    check(model_class, config, directory, seed=seed, sides=("right",), onnx=seed % 5 == 0, fuzzed=True)
