"""T5, T5 1.1 and mT5 against transformers."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers import (
    MT5Config,
    MT5ForConditionalGeneration,
    PreTrainedModel,
    T5Config,
    T5EncoderModel,
    T5ForConditionalGeneration,
)

from tests.parity.families.harness import check, check_reference
from tests.parity.reference import build

CONFIGS = {
    "tied": dict(
        vocab_size=61, d_model=21, d_kv=5, d_ff=33, num_layers=2, num_decoder_layers=3, num_heads=3,
        relative_attention_num_buckets=12, relative_attention_max_distance=17, layer_norm_epsilon=1e-3,
        feed_forward_proj="relu",
    ),
    "gated-untied": dict(
        vocab_size=50, d_model=32, d_kv=6, d_ff=20, num_layers=3, num_decoder_layers=1, num_heads=4,
        relative_attention_num_buckets=8, relative_attention_max_distance=9, layer_norm_epsilon=1e-6,
        feed_forward_proj="gated-gelu", tie_word_embeddings=False,
    ),
    "gated-tied": dict(
        vocab_size=44, d_model=18, d_kv=9, d_ff=27, num_layers=1, num_decoder_layers=2, num_heads=5,
        relative_attention_num_buckets=32, relative_attention_max_distance=128, layer_norm_epsilon=1e-5,
        feed_forward_proj="gated-silu",
    ),
}  # fmt: skip


def untied(reference: PreTrainedModel, seed: int) -> PreTrainedModel:
    """Transformers ties T5's head whatever the configuration says; what it loads from a T5 1.1 checkpoint is untied."""
    if not getattr(reference.config, "scale_decoder_outputs", False):
        generator = torch.Generator().manual_seed(seed + 1)
        drawn = 0.2 * torch.randn(reference.lm_head.weight.shape, generator=generator)
        reference.lm_head.weight = nn.Parameter(drawn)
    return reference


@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    reference = build(T5ForConditionalGeneration, T5Config(**CONFIGS[name]), seed=1)
    check_reference(untied(reference, 1), tmp_path)


def test_mt5(tmp_path):
    reference = build(MT5ForConditionalGeneration, MT5Config(**CONFIGS["gated-untied"]), seed=1)
    check_reference(untied(reference, 1), tmp_path)


@pytest.mark.parametrize("name", CONFIGS)
def test_the_encoder_alone(name, tmp_path):
    check(T5EncoderModel, T5Config(**CONFIGS[name]), tmp_path)
