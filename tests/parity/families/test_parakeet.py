"""Parakeet with CTC, and its encoder alone, against transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import ParakeetCTCConfig, ParakeetEncoder, ParakeetEncoderConfig, ParakeetForCTC

from tests.parity.families.harness import check, check_reference
from tests.parity.reference import build
from tests.thinned import one_in

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
