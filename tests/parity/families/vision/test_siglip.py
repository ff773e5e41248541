"""SigLIP against transformers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import SiglipConfig, SiglipModel

from tests.parity.families import pairs
from tests.parity.families.encoder_tests import ACTIVATIONS, EPS
from tests.thinned import one_in
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config, ConfigError

SPECIAL = dict(pad_token_id=1, bos_token_id=1, eos_token_id=2)
CONFIGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "equal widths": (
        dict(vocab_size=61, hidden_size=24, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17,
             max_position_embeddings=12, projection_size=24),
        dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=4, intermediate_size=33, image_size=18, patch_size=4),
    ),
    "one layer": (
        dict(vocab_size=40, hidden_size=20, num_hidden_layers=1, num_attention_heads=5, intermediate_size=50,
             max_position_embeddings=7, hidden_act="gelu", layer_norm_eps=1e-3, projection_size=20),
        dict(hidden_size=20, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, image_size=8, patch_size=8,
             num_channels=1, hidden_act="relu", layer_norm_eps=1e-5),
    ),
}  # fmt: skip


def config_of(text: dict[str, Any], vision: dict[str, Any]) -> SiglipConfig:
    return SiglipConfig(text_config={**text, **SPECIAL}, vision_config=vision)


@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    pairs.check(SiglipModel, config_of(*CONFIGS[name]), tmp_path)


@one_in(2)
@pytest.mark.parametrize(
    ("field", "change", "message"),
    [
        ("text_config", {"projection_size": 25}, "text_config.projection_size: must be 24"),
        ("vision_config", {"vision_use_head": False}, "vision_config.vision_use_head: must be true"),
    ],
)
def test_unsupported_values_are_refused(field, change, message):
    data = config_of(*CONFIGS["equal widths"]).to_dict()
    data |= {"architectures": ["SiglipModel"], field: data[field] | change}
    with pytest.raises(ConfigError, match=message):
        spec_of_config(Config(data, "config.json"), name="tiny")


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    width = 2 * 3 * data.draw(st.integers(1, 5), "sixth of the width")
    shared = {"hidden_act": data.draw(ACTIVATIONS, "activation"), "layer_norm_eps": data.draw(EPS, "eps")}
    text = dict(
        vocab_size=data.draw(st.integers(5, 90), "vocab_size"),
        hidden_size=width,
        projection_size=width,
        num_hidden_layers=data.draw(st.integers(1, 3), "layers"),
        num_attention_heads=data.draw(st.sampled_from([1, 2, 3]), "heads"),
        intermediate_size=data.draw(st.integers(1, 50), "hidden"),
        max_position_embeddings=data.draw(st.integers(2, 20), "positions"),
        **shared,
    )
    vision = dict(
        hidden_size=width,
        num_hidden_layers=data.draw(st.integers(1, 3), "layers of the images"),
        num_attention_heads=data.draw(st.sampled_from([1, 2, 3]), "heads of the images"),
        intermediate_size=data.draw(st.integers(1, 50), "hidden of the images"),
        image_size=data.draw(st.integers(8, 20), "image_size"),
        patch_size=data.draw(st.integers(3, 8), "patch_size"),
        **shared,
    )
    seed = data.draw(st.integers(0, 99), "seed")
    directory = tmp_path_factory.mktemp("drawn")
    pairs.check(SiglipModel, config_of(text, vision), directory, seed=seed, onnx=seed % 4 == 0, fuzzed=True)
