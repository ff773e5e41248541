"""Gemma, Gemma 2 and the text models of Gemma 3 against transformers."""

from __future__ import annotations

import json

import pytest
import torch
import transformers as hf
from hypothesis import strategies as st

from specs.forms.canonical import canonical, differences
from tests.parity.families.draws import EPS, FLAG, HEAD_DIM, lists
from tests.parity.families.family import FamilyTests, halve_matrices
from tests.parity.families.llamas import LINEAR, LLAMA3, YARN, draw_llama, rotation
from tests.parity.families.sizes import GROUPED
from zoo.configs.importing import import_spec, spec_of_config
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError

FULL, SLIDING = "full_attention", "sliding_attention"
HEADS = ("Model", "ForSequenceClassification", "ForTokenClassification")

CONFIGS = {
    "grouped": dict(
        GROUPED, hidden_size=30, head_dim=10, rms_norm_eps=1e-3, max_position_embeddings=128, attention_bias=True,
        rope_parameters=rotation(500.0),
    ),
    "untied": dict(
        vocab_size=47, hidden_size=33, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=3,
        head_dim=8, intermediate_size=50, max_position_embeddings=128, tie_word_embeddings=False,
        rope_parameters=LINEAR,
    ),
    "one key": dict(
        vocab_size=31, hidden_size=28, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=1,
        head_dim=32, intermediate_size=33, rms_norm_eps=1e-5, max_position_embeddings=128, attention_bias=True,
        rope_parameters=YARN,
    ),
}  # fmt: skip
GEMMA = {
    "grouped": {"hidden_act": "silu"},
    "untied": {"hidden_act": "gelu_python"},
    "one key": {"hidden_act": "gelu"},
}
"""Further fields of Gemma."""
GEMMA2 = {
    "grouped": dict(
        hidden_activation="silu", sliding_window=4, query_pre_attn_scalar=7, attn_logit_softcapping=1.5,
        final_logit_softcapping=2.5,
    ),
    "untied": dict(
        hidden_activation="gelu", sliding_window=6, attn_logit_softcapping=None, final_logit_softcapping=None,
    ),
    "one key": dict(layer_types=[FULL, FULL, SLIDING, FULL], sliding_window=3, attn_logit_softcapping=0.5),
}  # fmt: skip
"""Further fields of Gemma 2."""
GEMMA3 = {
    "grouped": dict(
        hidden_activation="silu", sliding_window=4, query_pre_attn_scalar=7, sliding_window_pattern=2,
        final_logit_softcapping=2.5, rope_parameters={FULL: LINEAR, SLIDING: rotation(70.0)},
    ),
    "untied": dict(
        hidden_activation="gelu", sliding_window=6, layer_types=[FULL, SLIDING],
        rope_parameters={FULL: rotation(500.0), SLIDING: LLAMA3},
    ),
    "one key": dict(sliding_window=3, rope_parameters={FULL: YARN, SLIDING: rotation(90.0)}),
}  # fmt: skip
"""Further fields of Gemma 3."""


def prepare(reference, seed: int) -> None:
    """The reference adds 1 to the weights of norms."""
    halve_matrices(reference, seed)
    with torch.no_grad():
        for name, parameter in reference.named_parameters():
            if name.endswith("norm.weight"):
                parameter.sub_(1)


ACTIVATIONS = st.sampled_from(["gelu_pytorch_tanh", "relu", "silu"])
CAPS = st.sampled_from([None, 0.7, 3.0, 50.0])


def draw_common(data) -> dict:
    common = draw_llama(data)
    del common["hidden_act"]
    # Norms of what branches add magnify the rounding of very narrow ones, wide ones add to it.
    common["hidden_size"] *= -(-32 // common["hidden_size"])
    common["num_hidden_layers"] = min(common["num_hidden_layers"], 3)
    return dict(**common, head_dim=HEAD_DIM, rms_norm_eps=EPS, attention_bias=FLAG)


def draw_layers(data, layers: int) -> dict:
    types = {"layer_types": lists([FULL, SLIDING], layers)} if data.draw(FLAG, "layer_types") else {}
    return types | dict(
        sliding_window=st.integers(2, 16), query_pre_attn_scalar=st.integers(20, 300),
        hidden_activation=ACTIVATIONS | st.just("gelu"), final_logit_softcapping=CAPS,
    )  # fmt: skip


class TestGemma(FamilyTests):
    model_class = hf.GemmaForCausalLM
    configs = {name: {**values, **GEMMA[name]} for name, values in CONFIGS.items()}
    prepare = staticmethod(prepare)
    heads = HEADS
    refusals = (
        ("hidden_act", "gelu_tan", "Did you mean"),
        ("hidden_activation", "relu", "must equal hidden_act"),
        ("use_bidirectional_attention", True, "must be false"),
        ("final_logit_softcapping", 30.0, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        activations = ACTIVATIONS | st.just("gelu_python")
        return draw_common(data) | dict(hidden_act=activations)


class TestGemma2(FamilyTests):
    model_class = hf.Gemma2ForCausalLM
    configs = {name: {**values, **GEMMA2[name]} for name, values in CONFIGS.items()}
    prepare = staticmethod(prepare)
    heads = HEADS
    refusals = (
        ("hidden_activation", "silo", "Did you mean 'silu'?"),
        ("sliding_window", None, "must be a number"),
        ("layer_types", [FULL, SLIDING], "must have an entry for each of the 3 layers"),
        ("layer_types", [FULL, SLIDING, "chunked_attention"], "must have supported kinds only"),
        ("query_pre_attn_scalar", 0.5, "must be a whole number"),
    )
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        common = draw_common(data)
        layers = draw_layers(data, common["num_hidden_layers"])
        return common | layers | dict(attn_logit_softcapping=CAPS)


class TestGemma3(FamilyTests):
    model_class = hf.Gemma3ForCausalLM
    configs = {name: {**values, **GEMMA3[name]} for name, values in CONFIGS.items()}
    prepare = staticmethod(prepare)
    heads = ("Model", "ForSequenceClassification")
    of_others = ("untied",)
    refusals = (
        ("attn_logit_softcapping", 50.0, "must be null"),
        ("rope_parameters", {FULL: {"rope_type": "linea", "factor": 2.0}}, "Did you mean 'linear'?"),
        ("rope_parameters", {"chunked_attention": {}}, "unsupported fields"),
        ("rope_scaling", {"rope_type": "linear", "factor": 8.0}, "combined with rope_parameters"),
        ("vision_config", {}, "unsupported fields"),
    )
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        common = draw_common(data)
        ropes = st.sampled_from([rotation(30.0), rotation(1e4), LINEAR, LLAMA3, YARN])
        common["rope_parameters"] = dict.fromkeys((FULL, SLIDING), ropes)
        layers = draw_layers(data, common["num_hidden_layers"])
        return common | layers | dict(sliding_window_pattern=st.integers(1, 3))


OLD = {
    "architectures": ["Gemma3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
    "attn_logit_softcapping": None, "bos_token_id": 2, "cache_implementation": "hybrid", "eos_token_id": [1, 106],
    "final_logit_softcapping": None, "head_dim": 8, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 32,
    "initializer_range": 0.02, "intermediate_size": 48, "max_position_embeddings": 32768,
    "model_type": "gemma3_text", "num_attention_heads": 4, "num_hidden_layers": 13, "num_key_value_heads": 1,
    "pad_token_id": 0, "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06, "rope_local_base_freq": 10000,
    "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "rope_theta": 1000000, "sliding_window": 512,
    "sliding_window_pattern": 6, "torch_dtype": "bfloat16", "transformers_version": "4.50.0.dev0",
    "use_cache": True, "vocab_size": 300,
}  # fmt: skip
"""The configs of Gemma 3 at a tiny size."""


def test_old_and_new_spellings_are_one_architecture(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(OLD))
    old = spec_of_config(Config(OLD, "config.json"), name="tiny")
    hf.Gemma3TextConfig.from_pretrained(tmp_path).save_pretrained(tmp_path / "new")
    new = json.loads((tmp_path / "new" / "config.json").read_text())
    assert "rope_local_base_freq" not in new
    assert not list(differences(canonical(old), canonical(import_spec(tmp_path / "new"))))
    windows = [block.attention.window for block in old.decoder.layer_blocks()]
    assert windows == ([512] * 5 + [None]) * 2 + [512]


def test_a_model_with_a_vision_part_is_refused_with_a_remedy():
    data = {"architectures": ["Gemma3nForConditionalGeneration"], "model_type": "gemma3n", "text_config": OLD}
    with pytest.raises(ConfigError) as caught:
        spec_of_config(Config({**data, "vision_config": {}}, "config.json"), name="tiny")
    assert "model_type: must be a text model: its other parts are not supported" in str(caught.value)
    assert "Pass family gemma3_text to export, build or import it as that family." in str(caught.value)


def test_gelu_of_the_first_configs_is_its_tanh_approximation():
    config = hf.GemmaConfig().to_dict()
    first = spec_of_config(Config({**config, "hidden_act": "gelu"}, "config.json"), name="gemma")
    second = spec_of_config(Config({**config, "hidden_activation": "gelu_pytorch_tanh"}, "x"), name="gemma")
    assert canonical(first) == canonical(second)
    assert first.decoder.block.feed_forward.activation == "gelu_tanh"
