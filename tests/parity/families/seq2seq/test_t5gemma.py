"""T5Gemma against transformers."""

from __future__ import annotations

from typing import Any

import torch
import transformers as hf
from hypothesis import strategies as st
from transformers.models.t5gemma.modeling_t5gemma import T5GemmaEncoder

from tests.parity.families.draws import EPS, FLAG, HEAD_DIM, VOCAB, WINDOW, drawn
from tests.parity.families.family import SPECIAL, FamilyTests
from tests.parity.families.llamas import LINEAR, rotation
from tests.parity.reference import build, load
from zoo.checkpoints.carried import special_tokens
from zoo.configs.importing import import_spec
from zoo.generation.settings import GenerationSettings

FULL, SLIDING = "full_attention", "sliding_attention"
ENCODER: dict[str, Any] = dict(
    hidden_size=24, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, head_dim=8, intermediate_size=41,
    sliding_window=3, rope_parameters=rotation(500.0), query_pre_attn_scalar=12,
)  # fmt: skip
DECODER: dict[str, Any] = dict(
    hidden_size=20, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, head_dim=6, intermediate_size=33,
    sliding_window=4, rope_parameters=rotation(700.0), query_pre_attn_scalar=6, final_logit_softcapping=5.0,
)  # fmt: skip
UNCAPPED: dict[str, Any] = {
    **ENCODER, "attn_logit_softcapping": None, "final_logit_softcapping": None, "hidden_activation": "relu",
    "layer_types": [FULL, SLIDING, SLIDING], "attention_bias": True, "rope_parameters": LINEAR,
}  # fmt: skip
CONFIGS = {
    "two widths": dict(vocab_size=61, encoder=ENCODER, decoder=DECODER),
    "alike, untied, no caps": dict(vocab_size=47, tie_word_embeddings=False, encoder=UNCAPPED, decoder=UNCAPPED),
}  # fmt: skip


def stack(data: st.DataObject, side: str) -> dict[str, Any]:
    """Any values of the fields of a stack."""
    kv_heads, groups = (
        data.draw(st.integers(1, 3), f"{side} kv"),
        data.draw(st.integers(1, 3), f"{side} groups"),
    )
    fields = dict(
        hidden_size=kv_heads * groups * data.draw(st.integers(2, 8), f"{side} width"),
        num_hidden_layers=st.integers(1, 3), num_attention_heads=kv_heads * groups, num_key_value_heads=kv_heads,
        head_dim=HEAD_DIM, intermediate_size=st.integers(8, 50), rms_norm_eps=EPS, sliding_window=WINDOW,
        query_pre_attn_scalar=st.integers(4, 64), attn_logit_softcapping=st.sampled_from([None, 20.0]),
        final_logit_softcapping=st.sampled_from([None, 5.0]), attention_bias=FLAG,
    )  # fmt: skip
    return drawn(data, fields)


class TestT5Gemma(FamilyTests):
    model_class = hf.T5GemmaForConditionalGeneration
    configs = CONFIGS
    heads = ("Model",)
    others = (
        (hf.T5GemmaEncoderModel, dict(is_encoder_decoder=False)),
        (hf.T5GemmaForSequenceClassification, dict(is_encoder_decoder=False, num_labels=5)),
        (hf.T5GemmaForTokenClassification, dict(is_encoder_decoder=False, num_labels=5)),
        (hf.T5GemmaForTokenClassification, dict(num_labels=5)),
    )
    of_others = ("two widths",)
    drawn = {"length": 15}
    refusals = (
        ("encoder.vocab_size", 60, "must be 61, as in the decoder"),
        ("decoder.hidden_activation", "gelu_tan", "is not supported"),
        ("decoder.layer_types", [FULL] * 4, "each of the 2 layers"),
        ("is_encoder_decoder", False, "must be true"),
    )

    @classmethod
    def config(cls, **values):
        vocabulary = {"vocab_size": values["vocab_size"], "max_position_embeddings": 128, **SPECIAL}
        stacks = {
            side: hf.T5GemmaModuleConfig(**vocabulary, **values[side]) for side in ("encoder", "decoder")
        }
        return hf.T5GemmaConfig(**{**SPECIAL, **values, **stacks})

    @staticmethod
    def draw(data):
        sides = {side: stack(data, side) for side in ("encoder", "decoder")}
        return dict(vocab_size=data.draw(VOCAB, "vocabulary"), tie_word_embeddings=FLAG, **sides)


class TestEncoderAlone(FamilyTests):
    model_class = T5GemmaEncoder
    configs = {"local first": dict(vocab_size=61, max_position_embeddings=128, dropout_rate=0.0, **ENCODER)}
    refusals = (("is_decoder", True, "must be false: a decoder alone has nothing to attend to"),)

    @classmethod
    def config(cls, **values):
        return hf.T5GemmaModuleConfig(**{**SPECIAL, **values})


def test_the_decoder_begins_with_the_token_that_begins_texts(tmp_path):
    """No field names a start token of the decoder."""
    config = TestT5Gemma.configured("two widths", bos_token_id=7)
    reference = build(TestT5Gemma.model_class, config, 3)
    reference.generation_config = hf.GenerationConfig(bos_token_id=7, pad_token_id=0)
    reference.save_pretrained(tmp_path)
    settings = GenerationSettings(special_tokens(tmp_path))
    ids = torch.tensor([[5, 9, 16, 3, 41]])
    theirs = reference.generate(ids, max_new_tokens=6, do_sample=False, eos_token_id=60)
    model: Any = load(import_spec(tmp_path), tmp_path)
    ours = model.generate(ids, 6, start=settings.start, stop=[60])
    assert settings.start == 7
    assert len(ours[0]) >= 6
    assert ours[0] == theirs[0].tolist()[-len(ours[0]) :]
