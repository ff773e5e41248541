"""Whisper against transformers; and its table of sinusoids."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers as hf
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from transformers.models.whisper.modeling_whisper import sinusoids

from specs.kinds.sinusoidal import Sinusoidal
from tests.parity.families.draws import FLAG, VOCAB
from tests.parity.families.family import RightPaddedTests
from tests.parity.families.seq2seq_tests import draw_bart
from tests.parity.reference import build, load
from zoo.components.sinusoidal import SinusoidTable
from zoo.configs.importing import import_spec
from zoo.context import BuildContext
from zoo.registry import build_component


class TestWhisper(RightPaddedTests):
    model_class = hf.WhisperForConditionalGeneration
    defaults = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
    configs = {
        "odd heads": dict(
            vocab_size=61, num_mel_bins=5, d_model=18, encoder_layers=3, decoder_layers=2, encoder_attention_heads=3,
            decoder_attention_heads=3, encoder_ffn_dim=17, decoder_ffn_dim=17, activation_function="gelu",
            max_source_positions=23, max_target_positions=31, scale_embedding=True, dropout=0.1,
        ),
        "unequal": dict(
            vocab_size=40, num_mel_bins=8, d_model=24, encoder_layers=1, decoder_layers=3, encoder_attention_heads=2,
            decoder_attention_heads=4, encoder_ffn_dim=33, decoder_ffn_dim=50, activation_function="relu",
            max_source_positions=9, max_target_positions=12, attention_dropout=0.2, activation_dropout=0.3,
        ),
        "untied": dict(
            vocab_size=33, num_mel_bins=2, d_model=20, encoder_layers=2, decoder_layers=1, encoder_attention_heads=5,
            decoder_attention_heads=1, encoder_ffn_dim=9, decoder_ffn_dim=8, activation_function="silu",
            max_source_positions=4, max_target_positions=7, encoder_layerdrop=0.1, decoder_layerdrop=0.1, init_std=0.1,
            tie_word_embeddings=False, apply_spec_augment=True, mask_time_prob=0.2,
        ),
    }  # fmt: skip
    heads = ("Model",)
    of_others = ("odd heads", "unequal")
    refusals = (
        ("is_decoder", True, "must be false", "the decoder alone"),
        ("activation_function", "gellu", "is not supported", "gelu"),
        ("architectures", ["WhisperForAudioClassification"], "must name a supported class", "WhisperForConditionalGeneration"),
    )  # fmt: skip

    @staticmethod
    def draw(data):
        fields = draw_bart(data) | dict(
            vocab_size=VOCAB, num_mel_bins=st.integers(1, 9), max_source_positions=st.integers(1, 30),
            max_target_positions=st.integers(4, 30), tie_word_embeddings=FLAG,
        )  # fmt: skip
        del fields["max_position_embeddings"], fields["scale_embedding"]
        return fields


def test_the_table_is_computed_where_a_checkpoint_lacks_it(tmp_path):
    config = TestWhisper.configured("odd heads")
    build(hf.WhisperForConditionalGeneration, config, seed=5).save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["model.encoder.embed_positions.weight"]
    save_file(tensors, tmp_path / "model.safetensors")
    table = load(import_spec(tmp_path), tmp_path).get_parameter("encoder_embedding.position.table.weight")
    assert torch.equal(table, sinusoids(config.max_source_positions, config.d_model))
    assert not table.requires_grad


@pytest.mark.parametrize("width", [2, 6, 384])
def test_sinusoids_of_whisper_with_and_without_a_table(width):
    if width > 2:  # of one frequency, the reference divides by zero
        kind = Sinusoidal(layout="half_split", spacing="tensor2tensor")
        context = BuildContext(width, 1500, causal=False, cross=False)
        position: Any = build_component(kind, context)
        computed = position.embed(torch.zeros(1, 1500, width), torch.arange(1500)[None])
        assert torch.equal(computed[0], sinusoids(1500, width))
    table = SinusoidTable(Sinusoidal(table=True), 9, (1.0,))
    assert torch.equal(table.fixed("weight")[:, 0], torch.arange(9.0).double().sin().float())
