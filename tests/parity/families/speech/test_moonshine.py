"""Moonshine against transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import MoonshineConfig, MoonshineForConditionalGeneration, MoonshineModel

from tests.parity.families.harness import check
from tests.parity.reference import build, difference, load
from tests.thinned import one_in
from zoo.configs.importing import import_spec, spec_of_config
from zoo.families.common.config import Config, ConfigError

SPECIAL = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
CONFIGS: dict[str, dict[str, Any]] = {
    "usual": dict(
        vocab_size=61, hidden_size=24, intermediate_size=37, encoder_num_hidden_layers=2, decoder_num_hidden_layers=3,
        encoder_num_attention_heads=2, decoder_num_attention_heads=2, max_position_embeddings=31, attention_dropout=0.1,
    ),
    "with biases": dict(
        vocab_size=40, hidden_size=30, intermediate_size=20, encoder_num_hidden_layers=1, decoder_num_hidden_layers=1,
        encoder_num_attention_heads=3, decoder_num_attention_heads=3, attention_bias=True, partial_rotary_factor=0.62,
        encoder_hidden_act="relu", decoder_hidden_act="gelu",
    ),
    "untied": dict(
        vocab_size=33, hidden_size=16, intermediate_size=9, encoder_num_hidden_layers=3, decoder_num_hidden_layers=2,
        encoder_num_attention_heads=1, decoder_num_attention_heads=1, tie_word_embeddings=False, initializer_range=0.1,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 1.0},
    ),
}  # fmt: skip


def config_of(**values: Any) -> MoonshineConfig:
    return MoonshineConfig(**values, **SPECIAL)


@one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    check(MoonshineForConditionalGeneration, config_of(**CONFIGS[name]), tmp_path, sides=("right",))


def test_heads_padded_with_zeros_give_the_same_scores(tmp_path):
    config = config_of(**CONFIGS["with biases"], pad_head_dim_to_multiple_of=8)
    reference = build(MoonshineForConditionalGeneration, config, seed=2)
    reference.save_pretrained(tmp_path)
    samples, tokens = (
        torch.randn(2, 3000, generator=torch.Generator().manual_seed(3)),
        torch.tensor([[1], [5]]),
    )
    ours = load(import_spec(tmp_path), tmp_path)(samples, tokens).logits
    assert difference(ours, reference(samples, decoder_input_ids=tokens).logits) < 1e-5


@pytest.mark.slow
def test_the_body_alone(tmp_path):
    config = config_of(**CONFIGS["with biases"])
    check(MoonshineModel, config, tmp_path, sides=("right",))


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"decoder_num_attention_heads": 4}, "decoder_num_attention_heads: must be 8, as encoder_num_attention_heads is", "value: 4"),
    ({"encoder_num_key_value_heads": 2}, "encoder_num_key_value_heads: must be 8", "value: 2"),
    ({"encoder_hidden_act": "gellu"}, "encoder_hidden_act: is not supported", "gelu"),
    ({"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}}, "rope_parameters.rope_type: is not supported", "default"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "rule", "remedy"), REFUSED, ids=[next(iter(case[0])) for case in REFUSED])
def test_unsupported_values_are_refused(change, rule, remedy):
    config = Config({"model_type": "moonshine", **change}, "config.json")
    with pytest.raises(ConfigError, match=rule) as caught:
        spec_of_config(config, name="moonshine")
    assert remedy in str(caught.value)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    heads = data.draw(st.integers(1, 4), "heads")
    config = config_of(
        vocab_size=data.draw(st.integers(5, 90), "vocab_size"),
        hidden_size=4 * heads * data.draw(st.integers(1, 4), "a quarter of a head"),
        intermediate_size=data.draw(st.integers(1, 50), "hidden"),
        encoder_num_hidden_layers=data.draw(st.integers(1, 3), "encoder layers"),
        decoder_num_hidden_layers=data.draw(st.integers(1, 3), "decoder layers"),
        encoder_num_attention_heads=heads,
        decoder_num_attention_heads=heads,
        max_position_embeddings=data.draw(st.integers(13, 40), "context"),
        partial_rotary_factor=data.draw(st.sampled_from([0.5, 1.0]), "rotated"),
        encoder_hidden_act=data.draw(st.sampled_from(["gelu", "relu", "silu"]), "activation"),
        decoder_hidden_act=data.draw(st.sampled_from(["gelu", "silu"]), "gate"),
        attention_bias=data.draw(st.booleans(), "bias"),
        tie_word_embeddings=data.draw(st.booleans(), "tied"),
    )
    directory, seed = tmp_path_factory.mktemp("moonshine"), data.draw(st.integers(0, 99), "seed")
    model_class = data.draw(st.sampled_from([MoonshineModel, MoonshineForConditionalGeneration]), "class")
    check(model_class, config, directory, seed=seed, sides=("right",), onnx=seed % 5 == 0, fuzzed=True)


def test_gradients_are_those_of_the_reference(tmp_path):
    reference = build(MoonshineForConditionalGeneration, config_of(**CONFIGS["usual"]), seed=4)
    reference.save_pretrained(tmp_path)
    ours = load(import_spec(tmp_path), tmp_path)
    generator = torch.Generator().manual_seed(5)
    samples, tokens = (
        torch.randn(2, 3000, generator=generator),
        torch.randint(1, 61, (2, 5), generator=generator),
    )
    for outputs in (reference(samples, decoder_input_ids=tokens), ours(samples, tokens)):
        outputs.logits.square().sum().backward()
    encoder, decoder = reference.model.encoder, reference.model.decoder
    gates = decoder.layers[2].mlp.fc1.weight.grad.chunk(2)
    for name, expected in {
        "encoder_embedding.filters.weight": encoder.conv1.weight.grad,
        "encoder_embedding.norm.weight": encoder.groupnorm.weight.grad,
        "encoder_embedding.layers.1.weight": encoder.conv3.weight.grad,
        "encoder.blocks.1.attention.query.weight": encoder.layers[1].self_attn.q_proj.weight.grad,
        "decoder.blocks.0.cross_attention.key.weight": decoder.layers[0].encoder_attn.k_proj.weight.grad,
        "decoder.blocks.2.feed_forward.up.weight": gates[0],
        "decoder.blocks.2.feed_forward.gate.weight": gates[1],
        "decoder_embedding.token.weight": decoder.embed_tokens.weight.grad,
    }.items():
        found = ours.get_parameter(name).grad
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5 * float(expected.abs().max()))
