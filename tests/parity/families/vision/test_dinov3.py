"""DINOv3's vision transformers against transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import DINOv3ViTConfig, DINOv3ViTModel

from specs.language.load import load
from tests.parity.families.harness import check
from tests.parity.reference import ACTIVATIONS
from tests.thinned import one_in
from zoo.configs.exporting import write_config
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config, ConfigError

CONFIGS: dict[str, dict[str, Any]] = {
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
MASK, REGISTERS = "embeddings.mask_token", "embeddings.register_tokens"
"""Read only by training; a tensor without values where there are no registers."""


@one_in(2)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    config = DINOv3ViTConfig(**CONFIGS[name])
    unread = (MASK,) if config.num_register_tokens else (MASK, REGISTERS)
    check(DINOv3ViTModel, config, tmp_path, sides=("right",), without=unread)


SIZES = ("small", "small-plus", "base", "large", "huge-plus", "7b")


@pytest.mark.parametrize("size", SIZES)
def test_published_counts_are_ours_and_the_mask_token(size):
    spec = load(f"dinov3-{size}-16")
    with torch.device("meta"):
        reference = DINOv3ViTModel(DINOv3ViTConfig.from_dict(write_config(spec)))
    count = sum(parameter.numel() for parameter in reference.parameters())
    assert count == (spec.expect.parameters or 0) + spec.d_model


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"image_size": [32, 24]}, "image_size: must be a whole number", "square"),
    ({"drop_path_rate": 0.1}, "drop_path_rate: must be 0.0", "without some of the layers"),
    ({"rope_parameters": {"rope_type": "yarn"}}, "unsupported fields", "rope_parameters"),
    ({"architectures": ["DINOv3ViTBackbone"]}, "must name a supported class", "DINOv3ViTModel"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "rule", "remedy"), REFUSED, ids=[next(iter(case[0])) for case in REFUSED])
def test_unsupported_values_and_classes_are_refused(change, rule, remedy):
    config = Config({"model_type": "dinov3_vit", **change}, "config.json")
    with pytest.raises(ConfigError, match=rule) as caught:
        spec_of_config(config, name="dinov3", strict=True)
    assert remedy in str(caught.value)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    heads = data.draw(st.integers(1, 4), "heads")
    patch = data.draw(st.integers(1, 6), "patch_size")
    registers = data.draw(st.sampled_from([0, 1, 4]), "num_register_tokens")
    biases = {
        f"{name}_bias": data.draw(st.booleans(), name) for name in ("query", "key", "value", "proj", "mlp")
    }
    config = DINOv3ViTConfig(
        hidden_size=heads * data.draw(st.sampled_from([4, 8, 12, 16]), "head_width"),
        num_hidden_layers=data.draw(st.integers(1, 3), "layers"),
        num_attention_heads=heads,
        intermediate_size=data.draw(st.integers(1, 60), "hidden"),
        use_gated_mlp=data.draw(st.booleans(), "use_gated_mlp"),
        hidden_act=data.draw(st.sampled_from(list(ACTIVATIONS)), "activation"),
        layer_norm_eps=data.draw(st.sampled_from([1e-12, 1e-2]), "eps"),
        image_size=patch + data.draw(st.integers(0, 12), "more"),
        patch_size=patch,
        num_channels=data.draw(st.integers(1, 4), "channels"),
        num_register_tokens=registers,
        rope_theta=data.draw(st.sampled_from([10.0, 100.0, 3000.0]), "rope_theta"),
        layerscale_value=data.draw(st.sampled_from([1e-5, 1.0]), "layerscale_value"),
        **biases,
    )
    directory, seed = tmp_path_factory.mktemp("dinov3"), data.draw(st.integers(0, 99), "seed")
    unread = (MASK,) if registers else (MASK, REGISTERS)
    options: dict[str, Any] = dict(
        seed=seed, sides=("right",), onnx=seed % 5 == 0, fuzzed=True, without=unread
    )
    check(DINOv3ViTModel, config, directory, **options)
