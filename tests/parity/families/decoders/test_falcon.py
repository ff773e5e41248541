"""Falcon against transformers, in all its layouts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from transformers import (
    FalconConfig,
    FalconForCausalLM,
    FalconForQuestionAnswering,
    FalconForSequenceClassification,
    FalconForTokenClassification,
    FalconModel,
)

from tests.parity.families.family import FamilyTests
from tests.parity.families.harness import check_reference
from tests.parity.families.llamas import DYNAMIC, LLAMA3
from tests.parity.families.refusals import refused
from tests.parity.reference import build

LINEAR = {"rope_type": "linear", "rope_theta": 1000.0, "factor": 2.5}
PLAIN = {"rope_type": "default", "rope_theta": 500.0}

CONFIGS: dict[str, dict[str, Any]] = {
    "7b": dict(
        vocab_size=61, hidden_size=30, num_hidden_layers=3, num_attention_heads=5, layer_norm_epsilon=1e-3,
        rope_parameters=PLAIN, ffn_hidden_size=41, activation="relu",
    ),
    "40b": dict(
        vocab_size=40, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, num_kv_heads=2,
        new_decoder_architecture=True, rope_parameters=LINEAR, tie_word_embeddings=False,
    ),
    "11b": dict(
        vocab_size=43, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_kv_heads=1,
        new_decoder_architecture=True, num_ln_in_parallel_attn=1, rope_parameters=PLAIN, bias=True,
    ),
    "rw": dict(
        vocab_size=83, hidden_size=36, num_hidden_layers=2, num_attention_heads=12, alibi=True, bias=True,
        multi_query=False, parallel_attn=False, layer_norm_epsilon=1e-6,
    ),
    "alibi, 8 heads": dict(
        vocab_size=83, hidden_size=24, num_hidden_layers=2, num_attention_heads=8, alibi=True,
    ),
    "sequential, multi-query": dict(
        vocab_size=83, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, parallel_attn=False,
        rope_parameters=PLAIN,
    ),
}  # fmt: skip


def config_of(**values) -> FalconConfig:
    if "rope_parameters" in values:
        values["rope_parameters"] = dict(values["rope_parameters"])
    return FalconConfig(
        **values, max_position_embeddings=400, bos_token_id=0, eos_token_id=0, pad_token_id=0, num_labels=4
    )


def check_falcon(model_class, config, directory, *, seed=1, **options):
    reference = build(model_class, config, seed)
    if config.alibi:  # which the reference adds twice where attention is eager
        reference.config._attn_implementation = "sdpa"
    check_reference(reference, directory, seed=seed, **options)


@pytest.mark.slow
def test_positions_that_eight_bits_round(tmp_path):
    fields = {**CONFIGS["rw"], "num_attention_heads": 6, "num_hidden_layers": 1, "layer_norm_epsilon": 1e-3}
    check_falcon(FalconForCausalLM, config_of(**fields), tmp_path, length=300)


OTHERS = [
    FalconModel,
    FalconForSequenceClassification,
    FalconForTokenClassification,
    FalconForQuestionAnswering,
]


@pytest.mark.slow
@pytest.mark.parametrize("model_class", OTHERS)
def test_other_heads_with_alibi(model_class, tmp_path):
    check_falcon(model_class, config_of(**CONFIGS["rw"]), tmp_path)


class TestFalcon(FamilyTests):
    model_class = FalconForCausalLM
    config = staticmethod(config_of)
    configs = CONFIGS
    check = staticmethod(check_falcon)
    others = [(each, {}) for each in OTHERS]
    of_others = "40b"
    refusals = (
        ("apply_residual_connection_post_layernorm", True, "must be false"),
        ("parallel_attn", False, "must be true where new_decoder_architecture is"),
        ("num_ln_in_parallel_attn", 3, "must be 1 or 2"),
        ("activation", "geluu", "Did you mean 'gelu'"),
        ("rope_parameters", {"rope_type": "liner", "factor": 2.0}, "Did you mean 'linear'"),
        ("partial_rotary_factor", 0.5, "must be 1"),
        ("n_inner", 4, "unsupported fields"),
    )
    of_refusals = "40b"

    @staticmethod
    def draw(data):
        kv_heads, groups = data.draw(st.integers(1, 4), "kv_heads"), data.draw(st.integers(1, 3), "groups")
        heads, new = kv_heads * groups, data.draw(st.booleans(), "new_decoder_architecture")
        parallel, alibi = data.draw(st.booleans(), "parallel"), data.draw(st.booleans(), "alibi")
        return dict(
            vocab_size=data.draw(st.integers(5, 90), "vocab_size"),
            hidden_size=heads * 2 * data.draw(st.integers(2, 6), "pairs"),
            num_hidden_layers=data.draw(st.integers(1, 4), "layers"),
            num_attention_heads=heads,
            num_kv_heads=kv_heads if new else heads,
            new_decoder_architecture=new,
            multi_query=data.draw(st.booleans(), "multi_query"),
            parallel_attn=new or parallel,
            num_ln_in_parallel_attn=data.draw(st.sampled_from([None, 1, 2] if new else [None, 1]), "norms"),
            alibi=alibi,
            bias=data.draw(st.booleans(), "bias"),
            ffn_hidden_size=data.draw(st.integers(1, 70), "hidden"),
            activation=data.draw(st.sampled_from(["gelu", "gelu_new", "relu", "silu"]), "activation"),
            layer_norm_epsilon=data.draw(st.sampled_from([1e-5, 1e-3, 1e-2]), "eps"),
            tie_word_embeddings=data.draw(st.booleans(), "tied"),
            rope_parameters=data.draw(st.sampled_from([PLAIN, LINEAR, DYNAMIC, LLAMA3]), "rope"),
        )


def test_heads_that_the_old_layout_cannot_have():
    refused(config_of(**CONFIGS["rw"]), "num_kv_heads", 3, "must be num_attention_heads, which is 12")


def test_norms_that_the_old_layout_cannot_have():
    refused(config_of(**CONFIGS["7b"]), "num_ln_in_parallel_attn", 2, "must be 1 where")
