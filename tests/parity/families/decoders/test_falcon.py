"""Falcon against transformers, in all its layouts."""

from __future__ import annotations

import pytest
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import ACTIVATION, FLAG, HIDDEN, LAYERS, VOCAB
from tests.parity.families.family import SPECIAL, FamilyTests
from tests.parity.families.llamas import ALL, DYNAMIC, LLAMA3
from tests.parity.families.refusals import refused

LINEAR = {"rope_type": "linear", "rope_theta": 1000.0, "factor": 2.5}
PLAIN = {"rope_type": "default", "rope_theta": 500.0}


@pytest.mark.slow
def test_positions_that_eight_bits_round(tmp_path):
    sizes = {"num_attention_heads": 6, "num_hidden_layers": 1, "layer_norm_epsilon": 1e-3}
    TestFalcon().check(hf.FalconForCausalLM, TestFalcon.configured("rw", **sizes), tmp_path, length=300)


class TestFalcon(FamilyTests):
    model_class = hf.FalconForCausalLM
    defaults = {**SPECIAL, "max_position_embeddings": 400}
    configs = {
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
        "alibi, 8 heads": dict(vocab_size=83, hidden_size=24, num_hidden_layers=2, num_attention_heads=8, alibi=True),
        "sequential, multi-query": dict(
            vocab_size=83, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, parallel_attn=False,
            rope_parameters=PLAIN,
        ),
    }  # fmt: skip
    heads = ALL
    of_others = ("40b", "rw")
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
    def prepare(reference, seed):
        if reference.config.alibi:  # the reference adds it twice if attention is eager
            reference.config._attn_implementation = "sdpa"

    @staticmethod
    def draw(data):
        kv_heads, groups = data.draw(st.integers(1, 4), "kv_heads"), data.draw(st.integers(1, 3), "groups")
        heads, new = kv_heads * groups, data.draw(st.booleans(), "new_decoder_architecture")
        parallel, alibi = data.draw(st.booleans(), "parallel"), data.draw(st.booleans(), "alibi")
        return dict(
            vocab_size=VOCAB, hidden_size=heads * 2 * data.draw(st.integers(2, 6), "pairs"), num_hidden_layers=LAYERS,
            num_attention_heads=heads, num_kv_heads=kv_heads if new else heads, new_decoder_architecture=new,
            multi_query=FLAG, parallel_attn=new or parallel,
            num_ln_in_parallel_attn=st.sampled_from([None, 1, 2] if new else [None, 1]), alibi=alibi, bias=FLAG,
            ffn_hidden_size=HIDDEN, activation=ACTIVATION, layer_norm_epsilon=st.sampled_from([1e-5, 1e-3, 1e-2]),
            tie_word_embeddings=FLAG, rope_parameters=st.sampled_from([PLAIN, LINEAR, DYNAMIC, LLAMA3]),
        )  # fmt: skip


def test_heads_that_the_old_layout_cannot_have():
    refused(
        hf.FalconForCausalLM, TestFalcon.configured("rw"), "num_kv_heads", 3,
        "must be num_attention_heads, which is 12",
    )  # fmt: skip


def test_norms_that_the_old_layout_cannot_have():
    refused(
        hf.FalconForCausalLM, TestFalcon.configured("7b"), "num_ln_in_parallel_attn", 2, "must be 1 where"
    )
