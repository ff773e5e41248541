"""A Whisper of random weights, and the tokens that it says in spectrograms."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import Tensor
from transformers import WhisperConfig, WhisperForConditionalGeneration

from tests.parity.reference import build


def whisper(directory: Path, count: int) -> tuple[Tensor, list[list[int]]]:
    """Write a checkpoint; return two spectrograms, 2 1 M T, and ``count`` greedy tokens for each, none of them twice."""
    config = WhisperConfig(
        vocab_size=50, d_model=24, num_mel_bins=8, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=20, decoder_ffn_dim=20, max_source_positions=30,
        max_target_positions=64, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=3,
    )  # fmt: skip
    reference = build(WhisperForConditionalGeneration, config, seed=9)
    reference.save_pretrained(directory)
    settings = {"is_multilingual": False, "no_timestamps_token_id": 4, "decoder_start_token_id": 3}
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    (directory / "generation_config.json").write_text(json.dumps({**settings, **special}))
    features, expected = torch.randn(2, 1, 8, 60, generator=torch.Generator().manual_seed(2)), []
    for spectrogram in features:
        ids = torch.tensor([[3, 4]])
        for _ in range(count):
            with torch.no_grad():
                scores = reference(input_features=spectrogram, decoder_input_ids=ids).logits[0, -1]
            scores[[2, *ids[0].tolist()]] = -torch.inf  # no end, and of random weights no token twice
            ids = torch.cat((ids, scores.argmax().view(1, 1)), 1)
        expected.append(ids[0, 2:].tolist())
    assert expected[0] != expected[1]
    return features, expected
