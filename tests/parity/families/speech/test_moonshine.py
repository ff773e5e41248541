"""Moonshine against transformers."""

from __future__ import annotations

import torch
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import FEW_LAYERS, FLAG, VOCAB
from tests.parity.families.family import RightPaddedTests
from tests.parity.reference import assert_gradients, build, difference, load
from zoo.configs.importing import import_spec


class TestMoonshine(RightPaddedTests):
    model_class = hf.MoonshineForConditionalGeneration
    defaults = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
    configs = {
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
    heads = ("Model",)
    of_others = ("with biases",)
    refusals = (
        ("decoder_num_attention_heads", 4, "must equal encoder_num_attention_heads, which is 2", "value: 4"),
        ("encoder_num_key_value_heads", 1, "must equal encoder_num_attention_heads, which is 2", "value: 1"),
        ("encoder_hidden_act", "gellu", "is not supported", "gelu"),
        ("rope_parameters.rope_type", "dynamic", "is not supported", "default"),
    )

    @staticmethod
    def draw(data):
        heads = data.draw(st.integers(1, 4), "heads")
        return dict(
            vocab_size=VOCAB, hidden_size=4 * heads * data.draw(st.integers(1, 4), "a quarter of a head"),
            intermediate_size=st.integers(1, 50), encoder_num_hidden_layers=FEW_LAYERS,
            decoder_num_hidden_layers=FEW_LAYERS, encoder_num_attention_heads=heads, decoder_num_attention_heads=heads,
            max_position_embeddings=st.integers(13, 40), partial_rotary_factor=st.sampled_from([0.5, 1.0]),
            encoder_hidden_act=st.sampled_from(["gelu", "relu", "silu"]),
            decoder_hidden_act=st.sampled_from(["gelu", "silu"]), attention_bias=FLAG, tie_word_embeddings=FLAG,
        )  # fmt: skip


def test_heads_padded_with_zeros_give_the_same_scores(tmp_path):
    config = TestMoonshine.configured("with biases", pad_head_dim_to_multiple_of=8)
    reference = build(hf.MoonshineForConditionalGeneration, config, seed=2)
    reference.save_pretrained(tmp_path)
    samples = torch.randn(2, 3000, generator=torch.Generator().manual_seed(3))
    tokens = torch.tensor([[1], [5]])
    ours = load(import_spec(tmp_path), tmp_path)(samples, tokens).logits
    assert difference(ours, reference(samples, decoder_input_ids=tokens).logits) < 1e-5


def test_gradients_are_those_of_the_reference(tmp_path):
    reference = build(hf.MoonshineForConditionalGeneration, TestMoonshine.configured("usual"), seed=4)
    reference.save_pretrained(tmp_path)
    ours = load(import_spec(tmp_path), tmp_path)
    generator = torch.Generator().manual_seed(5)
    samples = torch.randn(2, 3000, generator=generator)
    tokens = torch.randint(1, 61, (2, 5), generator=generator)
    for outputs in (reference(samples, decoder_input_ids=tokens), ours(samples, tokens)):
        outputs.logits.square().sum().backward()
    encoder, decoder = reference.model.encoder, reference.model.decoder
    gates = decoder.layers[2].mlp.fc1.weight.grad.chunk(2)
    expected = {
        "encoder_embedding.filters.weight": encoder.conv1.weight.grad,
        "encoder_embedding.norm.weight": encoder.groupnorm.weight.grad,
        "encoder_embedding.layers.1.weight": encoder.conv3.weight.grad,
        "encoder.blocks.1.attention.query.weight": encoder.layers[1].self_attn.q_proj.weight.grad,
        "decoder.blocks.0.cross_attention.key.weight": decoder.layers[0].encoder_attn.k_proj.weight.grad,
        "decoder.blocks.2.feed_forward.up.weight": gates[0],
        "decoder.blocks.2.feed_forward.gate.weight": gates[1],
        "decoder_embedding.token.weight": decoder.embed_tokens.weight.grad,
    }
    assert_gradients(ours, expected)
