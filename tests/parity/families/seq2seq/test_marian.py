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
from tests.parity.families.seq2seq_tests import SMALL, draw_bart, draw_final_bias
from tests.parity.reference import assert_close, load, ragged
from zoo.configs.importing import import_spec

SPECIAL = dict(
    pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=1, forced_eos_token_id=2
)


class TestMarian(RightPaddedTests):
    model_class = hf.MarianMTModel
    defaults = SPECIAL
    configs: ClassVar[Any] = {
        "scaled": dict(SMALL["scaled"], d_model=24, decoder_attention_heads=6, activation_function="swish"),
        "relu": SMALL["relu"],
        "one layer": dict(SMALL["one layer"], activation_function="gelu"),
    }
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
