"""The tests of encoder-decoders of texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from hypothesis import strategies as st

from exporters.export import export
from exporters.steps.options import ExportOptions
from tests.parity.families.draws import ACTIVATION, FEW_LAYERS, FLAG
from tests.parity.families.harness import converted
from tests.parity.reference import assert_close, build, load, ragged
from zoo.configs.importing import import_spec

HEADS = st.sampled_from([(1, 3), (2, 1), (2, 2), (3, 6)])
"""Heads of the encoder and of the decoder, which may differ."""
SMALL: dict[str, dict[str, Any]] = {
    "scaled": dict(
        vocab_size=61, d_model=21, max_position_embeddings=17, encoder_layers=2, encoder_ffn_dim=33,
        encoder_attention_heads=3, decoder_layers=3, decoder_ffn_dim=25, decoder_attention_heads=7,
        activation_function="gelu", scale_embedding=True, dropout=0.2, attention_dropout=0.3, activation_dropout=0.4,
    ),
    "relu": dict(
        vocab_size=50, d_model=32, max_position_embeddings=40, encoder_layers=3, encoder_ffn_dim=20,
        encoder_attention_heads=4, decoder_layers=1, decoder_ffn_dim=41, decoder_attention_heads=2,
        activation_function="relu", encoder_layerdrop=0.1, decoder_layerdrop=0.1, init_std=0.05,
    ),
    "one layer": dict(
        vocab_size=44, d_model=18, max_position_embeddings=13, encoder_layers=1, encoder_ffn_dim=9,
        encoder_attention_heads=1, decoder_layers=2, decoder_ffn_dim=7, decoder_attention_heads=3,
    ),
}  # fmt: skip
"""Configurations with BART's fields."""


def draw_bart(data: st.DataObject, *, step: int = 6) -> dict[str, Any]:
    """Any fields of a config with BART's, whose width is a multiple of ``step``."""
    encoder_heads, decoder_heads = data.draw(HEADS, "heads")
    return dict(
        vocab_size=st.integers(9, 90), d_model=step * data.draw(st.integers(1, 48 // step), "width"),
        max_position_embeddings=st.integers(4, 40), encoder_layers=FEW_LAYERS, decoder_layers=FEW_LAYERS,
        encoder_attention_heads=encoder_heads, decoder_attention_heads=decoder_heads,
        encoder_ffn_dim=st.integers(1, 50), decoder_ffn_dim=st.integers(1, 50), activation_function=ACTIVATION,
        scale_embedding=FLAG,
    )  # fmt: skip


def draw_final_bias(reference: Any, seed: int) -> None:
    """The bias of the logits is a buffer."""
    if hasattr(reference, "final_logits_bias"):
        generator = torch.Generator().manual_seed(seed + 7)
        reference.final_logits_bias.normal_(0.0, 0.3, generator=generator)


def check_at_end(model_class: Any, config: Any, directory: Path) -> None:
    """Compare a classifier, which reads the decoder at the end of sequence of the encoder's input.

    The decoder gets the same sequences one token later.  The model is imported, exported and converted back.
    """
    reference = build(model_class, config, seed=2)
    reference.save_pretrained(directory / "reference")
    spec = import_spec(directory / "reference")
    ids, mask = ragged(3, 11, config.vocab_size - 3, "right", 3)
    ids = (ids + 3) * mask + config.pad_token_id * (1 - mask)
    ids[torch.arange(3), mask.sum(1) - 1] = config.eos_token_id
    shifted = ids.roll(1, 1)
    shifted[:, 0] = config.decoder_start_token_id
    with torch.no_grad():
        expected = reference(ids, mask).logits  # which shifts them itself
        assert_close(load(spec, directory / "reference")(ids, shifted, mask, mask).logits, expected)
    export(spec, directory / "onnx", ExportOptions(weights=str(directory / "reference")))
    with torch.no_grad():
        assert_close(converted(spec, directory, reference)(ids, mask).logits, expected)
