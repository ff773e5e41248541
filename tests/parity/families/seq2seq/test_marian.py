"""Marian and Pegasus against transformers."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
import transformers as hf
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from tests.parity.families.draws import VOCAB
from tests.parity.families.family import RightPaddedTests
from tests.parity.families.harness import prepared
from tests.parity.families.seq2seq_tests import draw_bart, draw_final_bias
from tests.parity.reference import assert_close, load, ragged
from zoo.configs.importing import import_spec

SPECIAL = dict(
    pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=1, forced_eos_token_id=2
)


class TestMarian(RightPaddedTests):
    model_class = hf.MarianMTModel
    defaults = SPECIAL
    configs = {
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
    heads = ("Model",)
    refusals: ClassVar[Any] = (
        ("share_encoder_decoder_embeddings", False, "must be true", "one table"),
        ("decoder_vocab_size", 9, "must be 61", "one table"),
        ("activation_function", "swich", "is not supported", "swish"),
        ("normalize_embedding", True, "must be false", "embedding"),
        ("static_position_embeddings", False, "must be true", "positions"),
        ("architectures", ["MarianForCausalLM"], "must name a supported class", "MarianMTModel"),
    )

    @staticmethod
    def prepare(reference, seed):
        """Sinusoids are parameters that nothing changes."""
        draw_final_bias(reference, seed)
        with torch.no_grad():
            for stack in (reference.get_encoder(), reference.get_decoder()):
                stack.embed_positions.weight.copy_(stack.embed_positions.create_weight())

    @staticmethod
    def draw(data):
        return draw_bart(data) | dict(
            vocab_size=VOCAB, activation_function=st.sampled_from(["gelu", "gelu_new", "relu", "swish"])
        )


class TestPegasus(TestMarian):
    model_class = hf.PegasusForConditionalGeneration
    refusals = ()


def test_a_checkpoint_stores_its_sinusoids_or_leaves_them_out(tmp_path):
    config = TestPegasus.configured("relu")
    reference = prepared(hf.PegasusForConditionalGeneration, config, 3, TestPegasus.prepare)
    reference.save_pretrained(tmp_path)
    spec, ids = import_spec(tmp_path), ragged(2, 9, config.vocab_size, "right", 4)[0]
    stored = load(spec, tmp_path)
    file = tmp_path / "model.safetensors"
    tensors = load_file(file)
    others = {name: tensor for name, tensor in tensors.items() if "embed_positions" not in name}
    assert len(others) == len(tensors) - 2
    save_file(others, file)
    computed = load(spec, tmp_path)
    with torch.no_grad():
        assert torch.equal(stored(ids, ids).logits, computed(ids, ids).logits)
        assert_close(computed(ids, ids).logits, reference(ids, decoder_input_ids=ids).logits)
