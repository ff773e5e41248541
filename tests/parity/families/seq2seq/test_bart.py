"""BART and mBART against transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BartForQuestionAnswering,
    BartForSequenceClassification,
    BartModel,
    MBartConfig,
    MBartForConditionalGeneration,
    MBartForQuestionAnswering,
    MBartForSequenceClassification,
    MBartModel,
)

from tests.parity.families.end_of_sequence import check_at_end
from tests.parity.families.harness import check, check_reference
from tests.parity.reference import build
from tests.thinned import one_in
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config, ConfigError

SPECIAL = dict(
    pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=2
)
CONFIGS = {
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
        activation_function="gelu_new", classifier_dropout=0.2,
    ),
}  # fmt: skip
CLASSES = {BartConfig: BartForConditionalGeneration, MBartConfig: MBartForConditionalGeneration}


def drawn(model_class: type, config, seed: int):
    """A reference whose bias of the logits, a buffer, is drawn as well."""
    reference = build(model_class, config, seed)
    generator = torch.Generator().manual_seed(seed + 7)
    reference.final_logits_bias.normal_(0.0, 0.3, generator=generator)
    return reference


@one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("config_class", CLASSES)
def test_configuration(config_class, name, tmp_path):
    reference = drawn(CLASSES[config_class], config_class(**CONFIGS[name], **SPECIAL), seed=1)
    check_reference(reference, tmp_path, sides=("right",))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scaled", "relu"])
@pytest.mark.parametrize(
    ("model_class", "config_class"),
    [
        (BartModel, BartConfig),
        (BartForQuestionAnswering, BartConfig),
        (MBartModel, MBartConfig),
        (MBartForQuestionAnswering, MBartConfig),
    ],
)
def test_other_classes(model_class, config_class, name, tmp_path):
    labels = {"num_labels": 2} if model_class.__name__.endswith("Answering") else {}
    check(model_class, config_class(**CONFIGS[name], **SPECIAL, **labels), tmp_path, sides=("right",))


@pytest.mark.parametrize("labels", [{}, {"num_labels": 5}])
@pytest.mark.parametrize(
    ("model_class", "config_class"),
    [(BartForSequenceClassification, BartConfig), (MBartForSequenceClassification, MBartConfig)],
)
def test_classification_at_the_end_of_sequence(model_class, config_class, labels, tmp_path):
    check_at_end(model_class, config_class(**CONFIGS["one layer"], **SPECIAL, **labels), tmp_path)


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"tie_word_embeddings": False}, "tie_word_embeddings: must be true", "share one table"),
    ({"activation_function": "gelu_neww"}, "activation_function: is not supported", "gelu_new"),
    ({"is_decoder": True}, "is_decoder: must be false", "the decoder alone"),
    ({"normalize_before": True}, "normalize_before: must be false", "norms stand"),
    ({"normalize_embedding": False}, "normalize_embedding: must be true", "embedding"),
    ({"add_final_layer_norm": True}, "add_final_layer_norm: must be false", "stacks end"),
    ({"static_position_embeddings": True}, "static_position_embeddings: must be false", "positions"),
    ({"architectures": ["BartForCausalLM"]}, "must name a supported class", "BartForConditionalGeneration"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "rule", "remedy"), REFUSED, ids=[next(iter(case[0])) for case in REFUSED])
def test_unsupported_values_and_fields_are_refused(change, rule, remedy):
    config = Config({"model_type": "bart", **change}, "config.json")
    with pytest.raises(ConfigError, match=rule) as caught:
        spec_of_config(config, name="bart")
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
        activation_function=data.draw(st.sampled_from(["gelu", "gelu_new", "relu", "silu"]), "activation"),
        scale_embedding=data.draw(st.booleans(), "scale_embedding"),
        **SPECIAL,
    )
    directory, seed = tmp_path_factory.mktemp("bart"), data.draw(st.integers(0, 99), "seed")
    reference = drawn(CLASSES[config_class], config, seed)
    check_reference(reference, directory, seed=seed, sides=("right",), onnx=seed % 5 == 0, fuzzed=True)
