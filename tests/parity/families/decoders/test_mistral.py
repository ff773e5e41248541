"""Mistral against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, HEAD_DIM, WINDOW
from tests.parity.families.llamas import ALL, LINEAR, YARN, LlamaTests, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY
from tests.parity.reference import build
from zoo.checkpoints.converting import convert
from zoo.configs.importing import import_spec, spec_of_config
from zoo.families.common.config import Config


def test_a_config_that_says_little_has_the_defaults_of_the_first_model_but_null_is_no_window():
    def first_layer(**fields):
        data = {"model_type": "mistral", "num_hidden_layers": 1, **fields}
        model = spec_of_config(Config(data, "config.json"), name="tiny")
        return model.decoder.block.attention

    assert (first_layer().window, first_layer().key_value_heads) == (4096, 8)
    assert first_layer(sliding_window=None).window is None
    assert first_layer(num_key_value_heads=None).key_value_heads == 32


def test_a_checkpoint_that_llama_fits_too_is_converted_to_its_own_family(tmp_path):
    reference = build(hf.MistralForCausalLM, TestMistral.configured("without a window"), seed=1)
    reference.save_pretrained(tmp_path / "reference")
    (tmp_path / "converted").mkdir()
    spec = import_spec(tmp_path / "reference")
    assert convert(spec, str(tmp_path / "reference"), tmp_path / "converted").model_type == "mistral"


class TestMistral(LlamaTests):
    model_class = hf.MistralForCausalLM
    configs = {
        "windowed": dict(
            GROUPED, hidden_size=30, head_dim=10, rms_norm_eps=1e-3, max_position_embeddings=128, sliding_window=5,
            tie_word_embeddings=True, rope_parameters=rotation(500.0),
        ),
        "without a window": dict(
            MULTI_HEAD, rms_norm_eps=1e-5, max_position_embeddings=128, sliding_window=None, hidden_act="gelu_new",
            rope_parameters=LINEAR,
        ),
        "windows of one token": dict(
            vocab_size=31, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            intermediate_size=33, max_position_embeddings=128, sliding_window=1, rope_parameters=rotation(500.0),
        ),
        "yarn": dict(MULTI_QUERY, head_dim=32, max_position_embeddings=128, sliding_window=2, rope_parameters=YARN),
    }  # fmt: skip
    heads = ALL
    refusals = [
        ("hidden_act", "sillu", "Did you mean 'silu'?"),
        ("rope_parameters", {"rope_type": "yarm", "factor": 2.0}, "Did you mean 'yarn'?"),
        ("layer_types", ["full_attention"] * 3, "must be sliding_attention for every layer"),
        ("layer_types", ["sliding"] * 3, "sliding_attention"),
        ("layer_types", ["sliding_attention"], "each of the 3 layers"),
        ("attention_bias", True, "unsupported fields"),
    ]

    draws = dict(head_dim=HEAD_DIM, rms_norm_eps=EPS, sliding_window=st.none() | WINDOW)
