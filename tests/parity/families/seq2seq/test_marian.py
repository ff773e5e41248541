"""Marian and Pegasus against transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from transformers import (
    MarianConfig,
    MarianModel,
    MarianMTModel,
    PegasusConfig,
    PegasusForConditionalGeneration,
    PegasusModel,
    PreTrainedModel,
)

from tests.parity.families.harness import check_reference
from tests.parity.reference import assert_close, build, load, ragged
from tests.thinned import one_in
from zoo.configs.importing import import_spec, spec_of_config
from zoo.families.common.config import Config, ConfigError

SPECIAL = dict(
    pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=1, forced_eos_token_id=2
)
CONFIGS = {
    "scaled": dict(
        vocab_size=61, d_model=24, max_position_embeddings=17, encoder_layers=2, encoder_ffn_dim=33,
        encoder_attention_heads=3, decoder_layers=3, decoder_ffn_dim=25, decoder_attention_heads=6,
        activation_function="swish", scale_embedding=True, dropout=0.2, attention_dropout=0.3, activation_dropout=0.4,
    ),
    "relu": dict(
        vocab_size=50, d_model=32, max_position_embeddings=40, encoder_layers=3, encoder_ffn_dim=20,
        encoder_attention_heads=4, decoder_layers=1, decoder_ffn_dim=41, decoder_attention_heads=2,
        activation_function="relu", encoder_layerdrop=0.1, decoder_layerdrop=0.1, init_std=0.05,
    ),
    "one layer": dict(
        vocab_size=44, d_model=18, max_position_embeddings=13, encoder_layers=1, encoder_ffn_dim=9,
        encoder_attention_heads=1, decoder_layers=2, decoder_ffn_dim=7, decoder_attention_heads=3,
        activation_function="gelu",
    ),
}  # fmt: skip
CLASSES = {MarianConfig: MarianMTModel, PegasusConfig: PegasusForConditionalGeneration}


def drawn(model_class: type, config: Any, seed: int) -> PreTrainedModel:
    """A reference whose bias of the logits, a buffer, is drawn as well, and whose sinusoids are what they are."""
    reference = build(model_class, config, seed)
    if hasattr(reference, "final_logits_bias"):
        generator = torch.Generator().manual_seed(seed + 7)
        reference.final_logits_bias.normal_(0.0, 0.3, generator=generator)
    for stack in (reference.get_encoder(), reference.get_decoder()):
        with torch.no_grad():
            stack.embed_positions.weight.copy_(stack.embed_positions.create_weight())
    return reference


@one_in(4)
@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("config_class", CLASSES)
def test_configuration(config_class, name, tmp_path):
    reference = drawn(CLASSES[config_class], config_class(**CONFIGS[name], **SPECIAL), seed=1)
    check_reference(reference, tmp_path, sides=("right",))


@one_in(2)
@pytest.mark.parametrize(
    ("model_class", "config_class"), [(MarianModel, MarianConfig), (PegasusModel, PegasusConfig)]
)
def test_the_body_alone(model_class, config_class, tmp_path):
    reference = drawn(model_class, config_class(**CONFIGS["scaled"], **SPECIAL), seed=2)
    check_reference(reference, tmp_path, sides=("right",))


def test_a_checkpoint_stores_its_sinusoids_or_leaves_them_out(tmp_path):
    config = PegasusConfig(**CONFIGS["relu"], **SPECIAL)
    reference = drawn(PegasusForConditionalGeneration, config, seed=3)
    reference.save_pretrained(tmp_path)
    spec, ids = import_spec(tmp_path), ragged(2, 9, config.vocab_size, "right", 4)[0]
    stored = load(spec, tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    positions = {name for name in tensors if "embed_positions" in name}
    assert len(positions) == 2
    save_file(
        {name: tensor for name, tensor in tensors.items() if name not in positions},
        tmp_path / "model.safetensors",
    )
    computed = load(spec, tmp_path)
    with torch.no_grad():
        assert torch.equal(stored(ids, ids).logits, computed(ids, ids).logits)
        assert_close(computed(ids, ids).logits, reference(ids, decoder_input_ids=ids).logits)


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"share_encoder_decoder_embeddings": False}, "share_encoder_decoder_embeddings: must be true", "one table"),
    ({"decoder_vocab_size": 9}, "decoder_vocab_size: must be 58101", "one table"),
    ({"activation_function": "swich"}, "activation_function: is not supported", "swish"),
    ({"normalize_embedding": True}, "normalize_embedding: must be false", "embedding"),
    ({"static_position_embeddings": False}, "static_position_embeddings: must be true", "positions"),
    ({"architectures": ["MarianForCausalLM"]}, "must name a supported class", "MarianMTModel"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "rule", "remedy"), REFUSED, ids=[next(iter(case[0])) for case in REFUSED])
def test_unsupported_values_and_fields_are_refused(change, rule, remedy):
    config = Config({"model_type": "marian", **change}, "config.json")
    with pytest.raises(ConfigError, match=rule) as caught:
        spec_of_config(config, name="marian")
    assert remedy in str(caught.value)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    encoder_heads, decoder_heads = data.draw(st.sampled_from([(1, 3), (2, 1), (2, 2), (3, 6)]), "heads")
    config_class = data.draw(st.sampled_from(sorted(CLASSES, key=str)), "config_class")
    config = config_class(
        vocab_size=data.draw(st.integers(5, 90), "vocab_size"),
        d_model=6 * data.draw(st.integers(1, 6), "d_model over 6"),
        max_position_embeddings=data.draw(st.integers(4, 40), "context"),
        encoder_layers=data.draw(st.integers(1, 3), "encoder_layers"),
        decoder_layers=data.draw(st.integers(1, 3), "decoder_layers"),
        encoder_attention_heads=encoder_heads,
        decoder_attention_heads=decoder_heads,
        encoder_ffn_dim=data.draw(st.integers(1, 50), "encoder_ffn_dim"),
        decoder_ffn_dim=data.draw(st.integers(1, 50), "decoder_ffn_dim"),
        activation_function=data.draw(st.sampled_from(["gelu", "gelu_new", "relu", "swish"]), "activation"),
        scale_embedding=data.draw(st.booleans(), "scale_embedding"),
        **SPECIAL,
    )
    directory, seed = tmp_path_factory.mktemp("marian"), data.draw(st.integers(0, 99), "seed")
    reference = drawn(CLASSES[config_class], config, seed)
    check_reference(reference, directory, seed=seed, sides=("right",), onnx=seed % 5 == 0, fuzzed=True)
