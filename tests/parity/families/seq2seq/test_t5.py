"""T5, T5 1.1, mT5 and UMT5 against transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import (
    MT5Config,
    MT5EncoderModel,
    MT5ForConditionalGeneration,
    MT5ForQuestionAnswering,
    MT5ForSequenceClassification,
    MT5ForTokenClassification,
    MT5Model,
    PreTrainedModel,
    T5Config,
    T5EncoderModel,
    T5ForConditionalGeneration,
    T5ForQuestionAnswering,
    T5ForSequenceClassification,
    T5ForTokenClassification,
    T5Model,
    UMT5Config,
    UMT5EncoderModel,
    UMT5ForConditionalGeneration,
    UMT5ForQuestionAnswering,
    UMT5ForSequenceClassification,
    UMT5ForTokenClassification,
    UMT5Model,
)

from tests.parity.families.end_of_sequence import check_at_end
from tests.parity.families.harness import check, check_reference
from tests.parity.reference import assert_close, build, load, ragged
from tests.thinned import one_in
from zoo.configs.importing import import_spec, spec_of_config
from zoo.families.common.config import Config, ConfigError

CONFIGS = {
    "tied": dict(
        vocab_size=61, d_model=21, d_kv=5, d_ff=33, num_layers=2, num_decoder_layers=3, num_heads=3,
        relative_attention_num_buckets=10, relative_attention_max_distance=17, layer_norm_epsilon=1e-3,
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
        reference.lm_head.weight = nn.Parameter(untied_matrix(reference, seed))
    return reference


def untied_matrix(reference: PreTrainedModel, seed: int) -> Tensor:
    """Values of an output matrix."""
    generator = torch.Generator().manual_seed(seed + 1)
    return 0.2 * torch.randn(reference.lm_head.weight.shape, generator=generator)


@one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    reference = build(T5ForConditionalGeneration, T5Config(**CONFIGS[name]), seed=1)
    check_reference(untied(reference, 1), tmp_path)


def test_mt5(tmp_path):
    reference = build(MT5ForConditionalGeneration, MT5Config(**CONFIGS["gated-untied"]), seed=1)
    check_reference(untied(reference, 1), tmp_path)


@one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_umt5(name, tmp_path):
    check(UMT5ForConditionalGeneration, UMT5Config(**CONFIGS[name]), tmp_path)


def test_umt5_as_it_was_published_has_an_output_matrix_of_its_own_and_no_scale(tmp_path):
    config = UMT5Config(**CONFIGS["gated-untied"])
    reference = build(UMT5ForConditionalGeneration, config, seed=1)
    reference.lm_head.weight = nn.Parameter(untied_matrix(reference, 2))
    reference.config.tie_word_embeddings = False
    reference.save_pretrained(tmp_path)
    spec = import_spec(tmp_path)
    head: Any = spec.head
    assert (head.tie_embeddings, head.scale) == (False, None)
    ids, mask = ragged(2, 7, config.vocab_size, "right", 4)
    with torch.no_grad():
        assert_close(load(spec, tmp_path)(ids, ids, mask).logits, reference(ids, mask, ids).logits)


ENCODERS = [
    *(T5EncoderModel, T5ForTokenClassification, MT5EncoderModel, MT5ForTokenClassification),
    *(UMT5EncoderModel, UMT5ForTokenClassification),
]
BOTH = [
    *(T5Model, T5ForQuestionAnswering, MT5Model, MT5ForQuestionAnswering),
    *(UMT5Model, UMT5ForQuestionAnswering),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tied", "gated-untied"])
@pytest.mark.parametrize("model_class", [*ENCODERS, *BOTH])
def test_other_classes(model_class, name, tmp_path):
    config = model_class.config_class(**CONFIGS[name], classifier_dropout=0.2)
    check(model_class, config, tmp_path)


@pytest.mark.parametrize(
    "model_class", [T5ForSequenceClassification, MT5ForSequenceClassification, UMT5ForSequenceClassification]
)
def test_classification_at_the_end_of_sequence(model_class, tmp_path):
    config = model_class.config_class(**CONFIGS["gated-tied"], num_labels=4, decoder_start_token_id=0)
    check_at_end(model_class, config, tmp_path)


def test_reads_a_checkpoint_that_stores_the_shared_table_under_every_name(tmp_path):
    reference = build(T5ForConditionalGeneration, T5Config(**CONFIGS["tied"]), seed=3)
    reference.save_pretrained(tmp_path)
    tensors = {name: tensor.clone() for name, tensor in reference.state_dict().items()}
    copies = {"shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"}
    assert copies <= set(tensors)
    save_file(tensors, tmp_path / "model.safetensors")
    model = load(import_spec(tmp_path), tmp_path)
    ids, mask = ragged(2, 7, reference.config.vocab_size, "right", 4)
    with torch.no_grad():
        assert_close(model(ids, ids, mask).logits, reference(ids, mask, ids).logits)


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"feed_forward_proj": "gated-gelus"}, "feed_forward_proj: is not supported", "gated-gelu"),
    ({"is_decoder": True}, "is_decoder: must be false", "the decoder alone"),
    ({"architectures": ["T5ForTokenClassificatio"]}, "must name a supported class", "T5ForTokenClassification"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "rule", "remedy"), REFUSED, ids=[next(iter(case[0])) for case in REFUSED])
def test_unsupported_values_and_fields_are_refused(change, rule, remedy):
    config = Config({"model_type": "t5", **change}, "config.json")
    with pytest.raises(ConfigError, match=rule) as caught:
        spec_of_config(config, name="t5")
    assert remedy in str(caught.value)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    buckets = data.draw(st.integers(4, 36), "buckets")
    forms = ["relu", "gated-gelu", "gated-silu", "gelu"]
    tied = data.draw(st.booleans(), "tied")
    config = T5Config(
        vocab_size=data.draw(st.integers(5, 90), "vocab_size"),
        d_model=data.draw(st.integers(4, 40), "d_model"),
        d_kv=data.draw(st.integers(1, 9), "d_kv"),
        d_ff=data.draw(st.integers(1, 60), "d_ff"),
        num_layers=data.draw(st.integers(1, 3), "layers"),
        num_decoder_layers=data.draw(st.integers(1, 3), "decoder_layers"),
        num_heads=data.draw(st.integers(1, 6), "heads"),
        relative_attention_num_buckets=buckets,
        relative_attention_max_distance=buckets // 2 + data.draw(st.integers(1, 40), "reach"),
        layer_norm_epsilon=data.draw(st.sampled_from([1e-6, 1e-2]), "eps"),
        feed_forward_proj=data.draw(st.sampled_from(forms), "feed_forward"),
        tie_word_embeddings=tied,
    )
    directory, seed = tmp_path_factory.mktemp("t5"), data.draw(st.integers(0, 99), "seed")
    reference = untied(build(T5ForConditionalGeneration, config, seed), seed)
    check_reference(reference, directory, seed=seed, length=15, onnx=seed % 5 == 0, fuzzed=True)
