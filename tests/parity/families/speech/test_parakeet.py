"""Parakeet with CTC, and its encoder alone, against transformers."""

from __future__ import annotations

import pytest
import torch
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import FEW_LAYERS, flags
from tests.parity.families.family import RightPaddedTests
from tests.parity.families.harness import prepared
from tests.parity.reference import assert_gradients, load
from zoo.configs.importing import import_spec, spec_of_config
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError

CONFIGS = {
    "usual": dict(
        hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=37, conv_kernel_size=5,
        subsampling_conv_channels=6, num_mel_bins=16, initializer_range=0.1,
    ),
    "without biases": dict(
        hidden_size=20, num_hidden_layers=1, num_attention_heads=2, intermediate_size=30, conv_kernel_size=9,
        subsampling_conv_channels=4, num_mel_bins=8, attention_bias=False, convolution_bias=False, scale_input=False,
        hidden_act="gelu", subsampling_factor=4, initializer_range=0.1,
    ),
    "one convolution": dict(
        hidden_size=16, num_hidden_layers=3, num_attention_heads=4, intermediate_size=8, conv_kernel_size=1,
        subsampling_conv_channels=3, num_mel_bins=6, subsampling_factor=2, subsampling_conv_kernel_size=5,
        attention_bias=False, initializer_range=0.1, max_position_embeddings=40,
    ),
}  # fmt: skip


def draw_statistics(reference, seed: int) -> None:
    """The statistics of batch norms are buffers."""
    generator = torch.Generator().manual_seed(seed + 4)
    for name, buffer in reference.named_buffers():
        if name.endswith("running_mean"):
            buffer.normal_(0.0, 0.3, generator=generator)
        elif name.endswith("running_var"):
            buffer.uniform_(0.5, 2.0, generator=generator)


class TestParakeet(RightPaddedTests):
    model_class = hf.ParakeetForCTC
    defaults = {"vocab_size": 11, "pad_token_id": 10}
    configs = {name: {"encoder_config": values} for name, values in CONFIGS.items()}
    prepare = staticmethod(draw_statistics)
    refusals = (
        ("encoder_config.subsampling_factor", 6, "must be a power of 2\n  value: 6"),
        ("encoder_config.num_key_value_heads", 1, "must be 3: every head has keys and values of its own"),
        ("encoder_config.num_mel_bins", 84, "must be a multiple of 8, the step of all convolutions"),
        ({"encoder_config.conv_kernel_size": 8}, "encoder_config.conv_kernel_size: must be odd"),
        ("encoder_config.learned_positions", True, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        heads, convolutions = (
            data.draw(st.integers(1, 4), "heads"),
            data.draw(st.integers(1, 3), "convolutions"),
        )
        encoder = dict(
            hidden_size=2 * heads * data.draw(st.integers(1, 5), "width"), num_hidden_layers=FEW_LAYERS,
            num_attention_heads=heads, intermediate_size=st.integers(1, 40), conv_kernel_size=st.sampled_from([1, 3, 9]),
            subsampling_factor=2**convolutions, subsampling_conv_channels=st.integers(1, 6),
            subsampling_conv_kernel_size=st.sampled_from([3, 5]),
            num_mel_bins=2**convolutions * data.draw(st.integers(1, 4), "bins"),
            hidden_act=st.sampled_from(["silu", "gelu", "relu"]), initializer_range=0.2,
            **flags("attention_bias", "convolution_bias", "scale_input"),
        )  # fmt: skip
        return {"encoder_config": encoder}


class TestParakeetEncoder(RightPaddedTests):
    model_class = hf.ParakeetEncoder
    configs = CONFIGS


def test_gradients_are_those_of_the_reference(tmp_path):
    reference = prepared(hf.ParakeetForCTC, TestParakeet.configured("usual"), 1, draw_statistics)
    reference.save_pretrained(tmp_path)
    ours = load(import_spec(tmp_path), tmp_path)
    frames = torch.randn(2, 70, 16, generator=torch.Generator().manual_seed(5))
    for model in (reference, ours):
        model.zero_grad()
        model(frames).logits.square().sum().backward()
    layer = reference.encoder.layers[1]
    expected = {
        "embedding.layers.1.convolution.weight": reference.encoder.subsampling.layers[2].weight.grad,
        "encoder.blocks.1.attention.position.content_bias": layer.self_attn.bias_u.grad,
        "encoder.blocks.1.attention.position.distance_bias": layer.self_attn.bias_v.grad,
        "encoder.blocks.1.attention.position.projection.weight": layer.self_attn.relative_k_proj.weight.grad,
        "encoder.blocks.1.convolution.depthwise.weight": layer.conv.depthwise_conv.weight.grad,
    }
    assert_gradients(ours, expected)


def test_classes_with_transducers_are_refused():
    config = Config({"model_type": "parakeet_tdt", "encoder_config": {}}, "config.json")
    with pytest.raises(ConfigError, match="specs cannot express a decoder that steps through the frames"):
        spec_of_config(config, name="parakeet", strict=True)
