"""Parakeet with CTC, and its encoder alone, against transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import ParakeetCTCConfig, ParakeetEncoder, ParakeetEncoderConfig, ParakeetForCTC

from tests.parity.families.harness import check, check_reference
from tests.parity.reference import build, load
from tests.thinned import one_in
from zoo.configs.importing import import_spec, spec_of_config
from zoo.families.common.config import Config, ConfigError

CONFIGS: dict[str, dict[str, Any]] = {
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


def with_statistics(reference: Any, seed: int = 5) -> Any:
    """A model whose batch norms have seen some batches."""
    generator = torch.Generator().manual_seed(seed)
    for name, buffer in reference.named_buffers():
        if name.endswith("running_mean"):
            buffer.normal_(0.0, 0.3, generator=generator)
        elif name.endswith("running_var"):
            buffer.uniform_(0.5, 2.0, generator=generator)
    return reference


def reference_of(seed: int = 1, **values: Any) -> ParakeetForCTC:
    config = ParakeetCTCConfig(vocab_size=11, pad_token_id=10, encoder_config=ParakeetEncoderConfig(**values))
    return with_statistics(build(ParakeetForCTC, config, seed))


@one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    check_reference(reference_of(**CONFIGS[name]), tmp_path, sides=("right",))


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_encoder_alone(name, tmp_path):
    check(ParakeetEncoder, ParakeetEncoderConfig(**CONFIGS[name]), tmp_path, sides=("right",))


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    heads, convolutions = data.draw(st.integers(1, 4), "heads"), data.draw(st.integers(1, 3), "convolutions")
    values: dict[str, Any] = dict(
        hidden_size=2 * heads * data.draw(st.integers(1, 5), "width"),
        num_hidden_layers=data.draw(st.integers(1, 3), "layers"),
        num_attention_heads=heads,
        intermediate_size=data.draw(st.integers(1, 40), "hidden"),
        conv_kernel_size=data.draw(st.sampled_from([1, 3, 9]), "kernel"),
        subsampling_factor=2**convolutions,
        subsampling_conv_channels=data.draw(st.integers(1, 6), "channels"),
        subsampling_conv_kernel_size=data.draw(st.sampled_from([3, 5]), "stem kernel"),
        num_mel_bins=2**convolutions * data.draw(st.integers(1, 4), "bins"),
        attention_bias=data.draw(st.booleans(), "bias"),
        convolution_bias=data.draw(st.booleans(), "convolution bias"),
        scale_input=data.draw(st.booleans(), "scale"),
        hidden_act=data.draw(st.sampled_from(["silu", "gelu", "relu"]), "activation"),
        initializer_range=0.2,
    )
    seed = data.draw(st.integers(0, 99), "seed")
    options: dict[str, Any] = dict(seed=seed, sides=("right",), onnx=seed % 5 == 0, fuzzed=True)
    check_reference(reference_of(seed, **values), tmp_path_factory.mktemp("parakeet"), **options)


def test_gradients_are_those_of_the_reference(tmp_path):
    reference = reference_of(**CONFIGS["usual"])
    reference.save_pretrained(tmp_path)
    ours = load(import_spec(tmp_path), tmp_path)
    frames = torch.randn(2, 70, 16, generator=torch.Generator().manual_seed(5))
    for model in (reference, ours):
        model.zero_grad()
        model(frames).logits.square().sum().backward()
    layer = reference.encoder.layers[1]
    pairs = {
        "embedding.layers.1.convolution.weight": reference.encoder.subsampling.layers[2].weight,
        "encoder.blocks.1.attention.position.content_bias": layer.self_attn.bias_u,
        "encoder.blocks.1.attention.position.distance_bias": layer.self_attn.bias_v,
        "encoder.blocks.1.attention.position.projection.weight": layer.self_attn.relative_k_proj.weight,
        "encoder.blocks.1.convolution.depthwise.weight": layer.conv.depthwise_conv.weight,
    }
    for parameter, theirs in pairs.items():
        found, wanted = ours.get_parameter(parameter).grad, theirs.grad
        assert found is not None
        assert float((found - wanted).abs().max()) <= 1e-4 * max(1.0, float(wanted.abs().max())), parameter


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"subsampling_factor": 6}, r"encoder_config\.subsampling_factor: must be a power of 2\n  value: 6"),
    ({"num_mel_bins": 84}, r"encoder_config\.num_mel_bins: must be a multiple of 8, the step of all convolutions"),
    ({"conv_kernel_size": 8}, r"encoder\.block\.convolution\.kernel: must be odd"),
    ({"learned_positions": True}, r"learned_positions"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "rule"), REFUSED, ids=[str(case[0]) for case in REFUSED])
def test_unsupported_values_are_refused(change, rule):
    config = Config({"model_type": "parakeet_ctc", "encoder_config": change}, "config.json")
    with pytest.raises(ConfigError, match=rule):
        spec_of_config(config, name="parakeet", strict=True)


def test_classes_with_transducers_are_refused():
    config = Config({"model_type": "parakeet_tdt", "encoder_config": {}}, "config.json")
    with pytest.raises(ConfigError, match="specs cannot express a decoder that steps through the frames"):
        spec_of_config(config, name="parakeet", strict=True)
