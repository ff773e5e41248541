"""T5, T5 1.1, mT5 and UMT5 against transformers."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
import torch
import transformers as hf
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor, nn

from tests.parity.families.draws import FEW_LAYERS, FLAG, VOCAB
from tests.parity.families.family import FamilyTests
from tests.parity.families.seq2seq_tests import check_at_end
from tests.parity.reference import assert_close, build, load, ragged
from zoo.configs.importing import import_spec

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


def untied(reference, seed: int) -> None:
    """Transformers ties T5's head whatever the configuration says; what it loads from a T5 1.1 checkpoint is untied."""
    if hasattr(reference, "lm_head") and not getattr(reference.config, "scale_decoder_outputs", False):
        reference.lm_head.weight = nn.Parameter(untied_matrix(reference, seed))


def untied_matrix(reference: hf.PreTrainedModel, seed: int) -> Tensor:
    """Values of an output matrix."""
    generator = torch.Generator().manual_seed(seed + 1)
    return 0.2 * torch.randn(reference.lm_head.weight.shape, generator=generator)


class TestT5(FamilyTests):
    model_class = hf.T5ForConditionalGeneration
    defaults = {"classifier_dropout": 0.2}
    configs = CONFIGS
    heads = ("Model", "EncoderModel", "ForQuestionAnswering", "ForTokenClassification")
    of_others = ("tied", "gated-untied")
    drawn = {"length": 15}
    refusals: ClassVar[Any] = (
        ("feed_forward_proj", "gated-gelus", "is not supported", "gated-gelu"),
        ("is_decoder", True, "must be false", "the decoder alone"),
        ("architectures", ["T5ForTokenClassificatio"], "must name a supported class", "T5ForTokenClassification"),
    )  # fmt: skip
    prepare: ClassVar[Any] = staticmethod(untied)

    @staticmethod
    def draw(data):
        buckets = data.draw(st.integers(4, 36), "buckets")
        return dict(
            vocab_size=VOCAB, d_model=st.integers(4, 40), d_kv=st.integers(1, 9), d_ff=st.integers(1, 60),
            num_layers=FEW_LAYERS, num_decoder_layers=FEW_LAYERS, num_heads=st.integers(1, 6),
            relative_attention_num_buckets=buckets,
            relative_attention_max_distance=buckets // 2 + data.draw(st.integers(1, 40), "reach"),
            layer_norm_epsilon=st.sampled_from([1e-6, 1e-2]), tie_word_embeddings=FLAG,
            feed_forward_proj=st.sampled_from(["relu", "gated-gelu", "gated-silu", "gelu"]),
        )  # fmt: skip


class TestMT5(TestT5):
    model_class = hf.MT5ForConditionalGeneration
    refusals = ()
    draw = FamilyTests.draw


class TestUMT5(TestMT5):
    model_class = hf.UMT5ForConditionalGeneration
    prepare = None


def test_umt5_as_it_was_published_has_an_output_matrix_of_its_own_and_no_scale(tmp_path):
    reference = build(hf.UMT5ForConditionalGeneration, TestUMT5.configured("gated-untied"), seed=1)
    reference.lm_head.weight = nn.Parameter(untied_matrix(reference, 2))
    reference.config.tie_word_embeddings = False
    reference.save_pretrained(tmp_path)
    spec = import_spec(tmp_path)
    head: Any = spec.head
    assert (head.tie_embeddings, head.scale) == (False, None)
    assert_same_logits(load(spec, tmp_path), reference)


def assert_same_logits(ours, reference) -> None:
    ids, mask = ragged(2, 7, reference.config.vocab_size, "right", 4)
    with torch.no_grad():
        assert_close(ours(ids, ids, mask).logits, reference(ids, mask, ids).logits)


@pytest.mark.slow
@pytest.mark.parametrize("family", [TestT5, TestMT5, TestUMT5])
def test_classification_at_the_end_of_sequence(family, tmp_path):
    model_class = getattr(
        hf, family.model_class.__name__.replace("ConditionalGeneration", "SequenceClassification")
    )
    config = model_class.config_class(**CONFIGS["gated-tied"], num_labels=4, decoder_start_token_id=0)
    check_at_end(model_class, config, tmp_path)


def test_reads_a_checkpoint_that_stores_the_shared_table_under_every_name(tmp_path):
    reference = build(hf.T5ForConditionalGeneration, hf.T5Config(**CONFIGS["tied"]), seed=3)
    reference.save_pretrained(tmp_path)
    tensors = {name: tensor.clone() for name, tensor in reference.state_dict().items()}
    copies = {"shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"}
    assert copies <= set(tensors)
    save_file(tensors, tmp_path / "model.safetensors")
    assert_same_logits(load(import_spec(tmp_path), tmp_path), reference)
