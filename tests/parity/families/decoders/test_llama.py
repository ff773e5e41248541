"""Llama against transformers."""

from __future__ import annotations

import json

import pytest
import transformers as hf

from specs.forms.canonical import canonical, differences
from tests.parity.families.draws import EPS, FLAG, HEAD_DIM
from tests.parity.families.harness import check
from tests.parity.families.llamas import (
    ALL,
    DYNAMIC,
    LINEAR,
    LLAMA3,
    YARN,
    YARN_MSCALE,
    YARN_STATED,
    LlamaTests,
    rotation,
)
from tests.parity.families.sizes import GROUPED
from tests.thinned import one_in
from zoo.configs.importing import import_spec, spec_of_config
from zoo.families.common.config import Config


@one_in(2)
@pytest.mark.parametrize("name", ["llama3", "yarn"])
def test_beyond_the_original_context(name, tmp_path):
    check(hf.LlamaForCausalLM, TestLlama.configured(name), tmp_path, seed=2, length=100, onnx=False)


def test_beyond_the_context_that_dynamic_scaling_starts_from(tmp_path):
    check(hf.LlamaForCausalLM, TestLlama.configured("dynamic"), tmp_path, length=40, steps=False)


OLD = {
    "architectures": ["LlamaForCausalLM"], "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
    "hidden_size": 32, "initializer_range": 0.02, "intermediate_size": 48, "max_position_embeddings": 131072,
    "model_type": "llama", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
    "pretraining_tp": 1, "rms_norm_eps": 1e-05, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    "transformers_version": "4.43.0", "use_cache": True, "vocab_size": 70, "attention_bias": False,
    "attention_dropout": 0.0, "mlp_bias": False, "rope_theta": 500000.0,
    "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 8192, "rope_type": "llama3"},
}  # fmt: skip
"""The config of Llama 3.1 at a tiny size."""


def architecture(data) -> dict:
    return canonical(spec_of_config(Config(data, "config.json"), name="tiny"))


def test_old_and_new_spellings_are_one_architecture(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(OLD))
    hf.LlamaConfig.from_pretrained(tmp_path).save_pretrained(tmp_path / "new")
    new = json.loads((tmp_path / "new" / "config.json").read_text())
    assert "rope_scaling" not in new
    assert "rope_theta" not in new
    assert not list(differences(architecture(OLD), canonical(import_spec(tmp_path / "new"))))


def test_redundant_fields_of_the_first_configs_are_ignored():
    first = {key: value for key, value in OLD.items() if not key.startswith(("rope", "attention", "mlp"))}
    found = architecture({**first, "max_sequence_length": 2048, "rope_scaling": None, "_name_or_path": "x"})
    (layer, _) = found["decoder"]["layers"]
    assert layer["attention"]["position"] == {
        "kind": "rope", "theta": 10000.0, "dimensions": 8, "layout": "half_split",
        "rotates": "queries_and_keys", "scaling": None, "query_scaling": None, "sections": None, "frequencies": "computed",
    }  # fmt: skip


def test_the_dropout_of_a_classifier_of_tokens_is_read():
    tokens = {**OLD, "architectures": ["LlamaForTokenClassification"], "num_labels": 3}

    def head(**fields):
        return spec_of_config(Config({**tokens, **fields}, "config.json"), name="tiny").head

    assert (head().labels, head().dropout) == (3, 0.1)
    assert head(classifier_dropout=0.25).dropout == 0.25


class TestLlama(LlamaTests):
    quick = {}
    model_class = hf.LlamaForCausalLM
    configs = {
        "grouped": dict(
            GROUPED, hidden_size=30, head_dim=10, rms_norm_eps=1e-3, max_position_embeddings=128, attention_bias=True,
            mlp_bias=True, tie_word_embeddings=False, rope_parameters=rotation(500.0),
        ),
        "tied-linear": dict(
            vocab_size=47, hidden_size=33, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=3,
            head_dim=8, intermediate_size=50, rms_norm_eps=1e-6, max_position_embeddings=128, hidden_act="gelu",
            tie_word_embeddings=True, rope_parameters=LINEAR,
        ),
        "llama3": dict(
            vocab_size=90, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=1,
            head_dim=16, intermediate_size=24, rms_norm_eps=1e-5, max_position_embeddings=512,
            tie_word_embeddings=True, rope_parameters=LLAMA3,
        ),
        "yarn": dict(
            vocab_size=90, hidden_size=20, num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=5,
            head_dim=24, intermediate_size=24, rms_norm_eps=1e-5, max_position_embeddings=128,
            tie_word_embeddings=False, rope_parameters=YARN,
        ),
        "yarn-stated": dict(
            vocab_size=31, hidden_size=28, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2,
            head_dim=32, intermediate_size=33, rms_norm_eps=1e-5, max_position_embeddings=128,
            tie_word_embeddings=False, rope_parameters=YARN_STATED,
        ),
        "yarn-mscale": dict(
            vocab_size=31, hidden_size=28, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2,
            head_dim=32, intermediate_size=33, rms_norm_eps=1e-5, max_position_embeddings=128,
            tie_word_embeddings=False, rope_parameters=YARN_MSCALE,
        ),
        "dynamic": dict(
            vocab_size=31, hidden_size=28, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            head_dim=12, intermediate_size=33, rms_norm_eps=1e-5, max_position_embeddings=16,
            tie_word_embeddings=False, rope_parameters=DYNAMIC,
        ),
    }  # fmt: skip
    heads = ALL
    refusals = [
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("rope_parameters", {"rope_type": "lama3", "factor": 2.0}, "Did you mean 'llama3'?"),
        ("rope_parameters", {"type": "linear", "factor": 2.0, "tuned": True}, "unsupported fields"),
        ("partial_rotary_factor", 0.5, "must be 1"),
        ("residual_multiplier", 0.5, "unsupported fields"),
    ]

    draws = dict(head_dim=HEAD_DIM, rms_norm_eps=EPS, attention_bias=FLAG, mlp_bias=FLAG)
