"""Nomic BERT against transformers."""

from __future__ import annotations

import pytest
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.encoder_tests import ROTARY, EncoderTests, draw_rotary
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError

OLD = {
    "model_type": "nomic_bert", "architectures": ["NomicBertModel"], "activation_function": "geglu", "n_embd": 24,
    "n_head": 2, "n_inner": 20, "n_layer": 1, "n_positions": 99, "layer_norm_epsilon": 0.5, "rotary_emb_base": 77,
    "vocab_size": 5, "resid_pdrop": 0.25, "embd_pdrop": 0.5, "attn_pdrop": 0.75,
}  # fmt: skip


def old(**fields):
    return spec_of_config(Config({**OLD, **fields}, "config.json"), name="tiny")


def test_the_names_of_the_first_releases():
    spec, block = old(), old().encoder.block
    assert (spec.d_model, spec.context_length, spec.position.theta, spec.vocab_size) == (24, 99, 77.0, 5)
    assert (block.attention.heads, block.attention.dropout, block.norm.eps, block.dropout) == (
        2,
        0.75,
        0.5,
        0.25,
    )
    assert (block.feed_forward.hidden, block.feed_forward.activation, spec.embedding.dropout) == (
        20,
        "gelu",
        0.5,
    )
    both = old(hidden_size=24, rope_theta=77.0, activation_function="swiglu", hidden_act="relu")
    assert (both.d_model, both.encoder.block.feed_forward.activation) == (24, "relu")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("hidden_size", 9, "n_embd: must equal hidden_size, another name of the field, which is 9"),
        ("rope_theta", 9.0, "rotary_emb_base: must equal rope_theta"),
        ("prenorm", True, "must be false"),
        ("qkv_proj_bias", True, "must be false"),
        ("rotary_scaling_factor", 2.0, "must be null"),
        ("rotary_emb_fraction", 0.5, "must be 1.0"),
        ("activation_function", "swigli", "Did you mean 'swiglu'"),
    ],
)
def test_contradictions_and_parts_of_the_first_releases_that_have_no_field_now_are_refused(
    field, value, message
):
    with pytest.raises(ConfigError, match=message):
        old(**{field: value})


class TestNomicBert(EncoderTests):
    model_class = hf.NomicBertForMaskedLM
    configs = {
        "odd heads": ROTARY["odd heads"],
        "other head width": dict(ROTARY["one layer"], head_dim=6, type_vocab_size=1),
        "untied": ROTARY["untied"],
    }
    heads = ("Model", "ForSequenceClassification", "ForTokenClassification")
    refusals = (
        ("type_vocab_size", 0, "must be 1 or more"),
        ("hidden_act", "silo", "Did you mean 'silu'"),
        ("rope_parameters", {"rope_type": "yran"}, "Did you mean 'yarn'"),
        ("architectures", ["NomicBertForMaskedLm"], "Did you mean 'NomicBertForMaskedLM'"),
        ("sliding_window", 3, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        width = data.draw(st.sampled_from([None, 4, 6]), "head_dim")
        return draw_rotary(data, token_types=st.integers(1, 4)) | dict(head_dim=width)
