"""Whisper against transformers; and its table of sinusoids."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from transformers import WhisperConfig, WhisperForConditionalGeneration, WhisperModel
from transformers.models.whisper.modeling_whisper import sinusoids

from specs.kinds.position import Sinusoidal
from tests.parity.families.harness import check
from tests.parity.reference import build, load
from tests.thinned import one_in
from zoo.components.position import SinusoidTable
from zoo.configs.importing import import_spec, spec_of_config
from zoo.context import BuildContext
from zoo.families.common.config import Config, ConfigError
from zoo.registry import build_component

SPECIAL = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
CONFIGS = {
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


def config_of(**values) -> WhisperConfig:
    return WhisperConfig(**values, **SPECIAL)


@one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    check(WhisperForConditionalGeneration, config_of(**CONFIGS[name]), tmp_path, sides=("right",))


@pytest.mark.parametrize("name", ["odd heads", "unequal"])
def test_the_body_alone(name, tmp_path):
    check(WhisperModel, config_of(**CONFIGS[name]), tmp_path, sides=("right",))


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"is_decoder": True}, "is_decoder: must be false", "the decoder alone"),
    ({"activation_function": "gellu"}, "activation_function: is not supported", "gelu"),
    ({"architectures": ["WhisperForAudioClassification"]}, "must name a supported class", "WhisperForConditionalGeneration"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "rule", "remedy"), REFUSED, ids=[next(iter(case[0])) for case in REFUSED])
def test_unsupported_values_and_fields_are_refused(change, rule, remedy):
    config = Config({"model_type": "whisper", **change}, "config.json")
    with pytest.raises(ConfigError, match=rule) as caught:
        spec_of_config(config, name="whisper")
    assert remedy in str(caught.value)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    encoder_heads, decoder_heads = data.draw(st.sampled_from([(1, 3), (2, 1), (2, 2), (3, 6)]), "heads")
    config = config_of(
        vocab_size=data.draw(st.integers(5, 90), "vocab_size"),
        num_mel_bins=data.draw(st.integers(1, 9), "mel_bins"),
        d_model=6 * data.draw(st.integers(1, 6), "d_model over 6"),
        max_source_positions=data.draw(st.integers(1, 30), "source"),
        max_target_positions=data.draw(st.integers(4, 30), "target"),
        encoder_layers=data.draw(st.integers(1, 3), "encoder_layers"),
        decoder_layers=data.draw(st.integers(1, 3), "decoder_layers"),
        encoder_attention_heads=encoder_heads,
        decoder_attention_heads=decoder_heads,
        encoder_ffn_dim=data.draw(st.integers(1, 50), "encoder_ffn_dim"),
        decoder_ffn_dim=data.draw(st.integers(1, 50), "decoder_ffn_dim"),
        activation_function=data.draw(st.sampled_from(["gelu", "gelu_new", "relu", "silu"]), "activation"),
        tie_word_embeddings=data.draw(st.booleans(), "tied"),
    )
    directory, seed = tmp_path_factory.mktemp("whisper"), data.draw(st.integers(0, 99), "seed")
    classes = [WhisperModel, WhisperForConditionalGeneration]
    model_class = data.draw(st.sampled_from(classes), "class")
    check(model_class, config, directory, seed=seed, sides=("right",), onnx=seed % 5 == 0, fuzzed=True)


def test_the_table_is_computed_where_a_checkpoint_lacks_it(tmp_path):
    config = config_of(**CONFIGS["odd heads"])
    build(WhisperForConditionalGeneration, config, seed=5).save_pretrained(tmp_path)
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
