"""Configs as specs and back: what is read, what is refused and with which words, and when two specs are one model."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from transformers import CONFIG_MAPPING

from specs.forms.canonical import canonical, differences
from specs.language.load import load
from specs.language.preset_files import preset_names
from tests.thinned import one_in
from zoo.configs.exporting import NoFamilyError, write_config
from zoo.configs.importing import import_spec, spec_of_config
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError, UnsupportedFieldsError
from zoo.families.common.inexpressible import INEXPRESSIBLE
from zoo.families.common.layer_runs import pattern
from zoo.families.registry import MODEL_TYPES, family

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 100, "hidden_size": 32,
    "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
}  # fmt: skip


def read(**changes: Any) -> Any:
    return spec_of_config(Config({**LLAMA, **changes}, "config.json"), name="x")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "lama"}, "config.json: model_type: is not a supported family\n  value: 'lama'\n  Did you mean 'llama'?"),
        ({"model_type": "rwkv"}, "config.json: model_type: is not supported: specs cannot express the recurrence of RWKV-4"),
        ({"model_type": "qwen4_exp", "text_config": {}}, "config.json: model_type: is not supported: specs cannot express several residual streams"),
        ({"model_type": "baichuan"}, "config.json: model_type: is not a supported family\n  value: 'baichuan'\n  zoo has no family like it."),
        (
            {"model_type": "florence2", "text_config": {"model_type": "bart"}},
            "config.json: model_type: is not supported: specs cannot express images whose width and resolution change",
        ),
        ({"model_type": "parakeet_rnnt"}, "config.json: model_type: is not supported: specs cannot express a decoder that steps"),
        ({"model_type": None}, "config.json: model_type: is required, as it names the family"),
        ({"model_type": ["llama"]}, "config.json: model_type: is not a supported family\n  value: ['llama']"),
        ({"architectures": ["LlamaForVision"]}, "config.json: architectures: must name a supported class of llama\n  value: ['LlamaForVision']\n  Choose from: LlamaForCausalLM"),
        ({"architectures": "LlamaModel"}, "config.json: architectures: must be a list of class names"),
        ({"hidden_act": "silu_"}, "config.json: hidden_act: is not supported\n  value: 'silu_'\n  Did you mean 'silu'?"),
        ({"hidden_size": "32"}, "config.json: hidden_size: must be a whole number\n  value: '32'"),
        ({"hidden_size": True}, "config.json: hidden_size: must be a whole number\n  value: True"),
        ({"hidden_size": 32.0}, "config.json: hidden_size: must be a whole number\n  value: 32.0"),
        ({"rms_norm_eps": "1e-5"}, "config.json: rms_norm_eps: must be a number\n  value: '1e-5'"),
        ({"mlp_bias": 1}, "config.json: mlp_bias: must be true or false\n  value: 1"),
        (
            {"partial_rotary_factor": 1e308},
            "config.json: partial_rotary_factor: must be from 0 to 1, the rotated share of a head\n"
            "  value: 1e+308",
        ),
        (
            {"rope_scaling": {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 0}},
            "config.json: rope_scaling.original_max_position_embeddings: must be at least 2\n  value: 0",
        ),
        (
            {"original_max_position_embeddings": 1, "rope_scaling": {"rope_type": "longrope"}},
            "config.json: original_max_position_embeddings: must be at least 2\n  value: 1",
        ),
        ({"rope_scaling": "linear"}, "config.json: rope_scaling: must be a mapping\n  value: 'linear'"),
        ({"rope_scaling": {"type": "su"}}, "config.json: rope_scaling.type: is not supported\n  value: 'su'\n  Choose from: default, linear, "),
        ({"rope_scaling": {"rope_type": "yarm", "factor": 2.0}}, "config.json: rope_scaling.rope_type: is not supported\n  value: 'yarm'\n  Did you mean 'yarn'?"),
        ({"rope_scaling": {"rope_type": "linear"}}, "config.json: rope_scaling.factor: is required"),
        ({"rope_scaling": {"rope_type": "linear", "factor": 2.0, "mystery": 1}}, "config.json has unsupported fields:\n  rope_scaling.mystery: 1"),
        ({"rope_parameters": {"rope_type": "axial"}}, "config.json: rope_parameters.rope_type: is not supported\n  value: 'axial'"),
        ({"is_causal": False, "layer_types": ["full_attention"]},
         "config.json has unsupported fields:\n  is_causal: False\n  layer_types: ['full_attention']"),
        ({"quantization_config": {"bits": 4}}, "config.json: quantization_config.quant_method: is not supported\n  value: None\n  Choose from: gptq, "),
        ({"num_key_value_heads": 3}, "config.json: num_key_value_heads: must divide num_attention_heads, which is 4\n  value: 3\n  Use a divisor: 1, 2, 4."),
        ({"num_hidden_layers": 0}, "config.json: num_hidden_layers: must be greater than 0\n  value: 0\n  Use 1 or more."),
    ],
)  # fmt: skip
def test_unsupported_fields_are_refused_with_a_suggestion(changes: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(**changes)
    assert str(caught.value).startswith(message)


DEPTHS = (
    "num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers",
    "num_decoder_layers", "encoder_num_hidden_layers", "decoder_num_hidden_layers",
)  # fmt: skip


def _with_images(text: str, fields: dict[str, int]) -> dict[str, Any]:
    return {
        "text_config": {"model_type": text, **fields},
        "vision_config": {"model_type": "siglip_vision_model"},
    }


INSIDE: dict[str, Callable[[dict[str, int]], dict[str, Any]]] = {
    **dict.fromkeys(("clip", "metaclip_2", "chinese_clip"), lambda fields: {"text_config": fields}),
    "llava": lambda fields: {
        "text_config": {"model_type": "llama", **fields},
        "vision_config": {"model_type": "clip_vision_model"},
    },
    "gemma3": partial(_with_images, "gemma3_text"),
    "paligemma": partial(_with_images, "gemma"),
    "colpali": lambda fields: {"vlm_config": {"model_type": "paligemma", **_with_images("gemma", fields)}},
    "modernvbert": partial(_with_images, "modernbert"),
    "colmodernvbert": lambda fields: {
        "vlm_config": {"model_type": "modernvbert", **_with_images("modernbert", fields)}
    },
    "colqwen2": lambda fields: {"vlm_config": {"model_type": "qwen2_vl", **fields}},
    **dict.fromkeys(
        ("siglip", "owlvit", "idefics2", "idefics3", "smolvlm", "internvl"),
        lambda fields: {"vision_config": fields},
    ),
    "t5gemma": lambda fields: {"encoder": fields, "decoder": {}},
    "parakeet_ctc": lambda fields: {"encoder_config": fields},
    "blip": lambda fields: {
        "text_config": {"model_type": "blip_text_model"},
        "vision_config": {"model_type": "blip_vision_model", **fields},
    },
    "vision-encoder-decoder": lambda fields: {
        "encoder": {"model_type": "vit", **fields},
        "decoder": {"model_type": "gpt2"},
    },
}
"""How fields stand in configs that hold others."""


@one_in(12)
@pytest.mark.parametrize("model_type", MODEL_TYPES)
@pytest.mark.parametrize("count", [10_001, 2_000_000_000, 2**63])
def test_layers_are_bounded_before_anything_is_made_of_them(model_type: str, count: int) -> None:
    found = []
    for name in DEPTHS:
        fields = {name: count}
        data = INSIDE[model_type](fields) if model_type in INSIDE else fields
        try:
            spec_of_config(
                Config({"model_type": model_type, "num_experts_per_tok": 1, **data}, "config.json"), name="x"
            )
        except ConfigError as error:
            rule = "must fit in 64 bits" if count == 2**63 else "must be at most 10,000"
            found += [name] if f"{name}: {rule}\n  value: {count}" in str(error) else []
    assert found


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model_type": "gpt_neo", "attention_types": [[["global"], 10**12]]}, "must cover num_layers, which is 24"),
        ({"model_type": "gpt_neo", "attention_types": [[[{}], 24]]}, "must have only types global and local"),
        ({"model_type": "modernbert", "layer_types": [{}] * 22}, "must have supported kinds only"),
        ({"model_type": "falcon", "alibi": True, "num_attention_heads": 9000}, "num_attention_heads: must divide hidden_size, which is 4544"),
        ({"model_type": "recurrent_gemma", "rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, "original_max_position_embeddings: is required"),
        ({"model_type": "recurrent_gemma", "rope_scaling": {"rope_type": "yarn", "original_max_position_embeddings": 9}}, "rope_scaling.factor: is required"),
        ({"model_type": "recurrent_gemma", "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, "rope_scaling.rope_type: must not be dynamic in a model without a context length"),
        ({**LLAMA, "rms_norm_eps": 10**400}, "rms_norm_eps: must fit in 64 bits"),
        ({**LLAMA, "hidden_size": 2**63}, "hidden_size: must fit in 64 bits"),
    ],
)  # fmt: skip
def test_values_as_no_program_writes_them(fields: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        spec_of_config(Config(fields, "config.json"), name="x")


def test_a_field_that_the_user_vouches_for_is_passed_over() -> None:
    config = Config({**LLAMA, "is_causal": False}, "config.json")
    spec = spec_of_config(config, name="x", ignored=["is_causal"], strict=True)
    assert canonical(spec) == canonical(read())


FOREIGN = {"_model_name_or_path": "x", "unsloth_fixed": True, "transformers.js_config": {"dtype": "q8"}}


def test_fields_unknown_to_the_reference_are_skipped_and_reported() -> None:
    told: list[str] = []
    spec = spec_of_config(Config({**LLAMA, **FOREIGN}, "config.json"), name="x", tell=told.extend)
    assert spec == read()
    assert told == list(FOREIGN)
    with pytest.raises(UnsupportedFieldsError, match="unsloth_fixed: True") as refused:
        spec_of_config(Config({**LLAMA, **FOREIGN}, "config.json"), name="x", strict=True)
    assert refused.value.fields == tuple(FOREIGN)


def test_a_field_that_the_reference_of_another_family_has_is_passed_over() -> None:
    told: list[str] = []
    spec_of_config(Config({**LLAMA, "scale_attn_weights": False}, "config.json"), name="x", tell=told.extend)
    assert told == ["scale_attn_weights"]


def test_a_long_list_of_fields_is_cut() -> None:
    many = {f"field_{i}" + "x" * 100: "\x1b[31m" for i in range(2000)}
    with pytest.raises(UnsupportedFieldsError) as refused:
        spec_of_config(Config({**LLAMA, **many}, "config.json"), name="x", strict=True)
    text = str(refused.value)
    assert text.endswith("\n  ... and 1,990 more")
    assert len(text) < 3000
    assert "\x1b" not in text


def test_fields_without_effect_on_the_model_are_ignored() -> None:
    extra = {"torch_dtype": "float16", "use_cache": True, "_name_or_path": "x", "pretraining_tp": 1,
             "transformers_version": "4.1", "bos_token_id": 1, "task_specific_params": {"a": 1}}  # fmt: skip
    assert read(**extra) == read()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a JSON object"),
        (b"[]", "is not a JSON object"),
        (b'{"model_type": ', "is not a JSON object"),
        (b"\xff\xfe", "is not a JSON object"),
        (b"[" * 1_000_000, "is nested more than 64 levels deep"),
        (b'{"a": ' * 500 + b"1" + b"}" * 500, "is nested more than 64 levels deep"),
        (b'{"model_type": "\\ud800"}', "an unpaired surrogate"),
        (b"{}", "model_type: is required, as it names the family"),
    ],
)
def test_a_file_that_is_not_a_config_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        import_spec(tmp_path)


def test_a_directory_without_a_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"config\.json is missing\n  Pass a directory with a config\.json"):
        import_spec(tmp_path)


def test_the_name_of_a_spec_is_that_of_its_directory(tmp_path: Path) -> None:
    place = tmp_path / "my model (copy)"
    place.mkdir()
    (place / "config.json").write_text(json.dumps(LLAMA))
    assert import_spec(place).name == "my-model-copy"
    assert import_spec(place / "config.json").name == "my-model-copy"
    assert import_spec(place, name="other").name == "other"


@pytest.mark.parametrize("spelling", ["rope_parameters", "rope_scaling", "old type"])
def test_both_spellings_of_rope_give_the_same_spec(spelling: str) -> None:
    scaling = {"factor": 4.0, "original_max_position_embeddings": 64}
    spellings: dict[str, Any] = {
        "rope_parameters": {"rope_parameters": {"rope_type": "yarn", "rope_theta": 5e5, **scaling}},
        "rope_scaling": {"rope_theta": 5e5, "rope_scaling": {"rope_type": "yarn", **scaling}},
        "old type": {"rope_theta": 5e5, "rope_scaling": {"type": "yarn", **scaling}},
    }
    position = read(**spellings[spelling]).position
    assert (position.theta, position.scaling.kind, position.scaling.factor) == (5e5, "yarn", 4.0)


# ------------------------------------------------------------------------------------------------ the way back


def test_every_module_has_its_registered_families() -> None:
    for model_type in MODEL_TYPES:
        assert family(model_type).model_type == model_type


def test_inexpressible_specs_are_refused_with_the_differences_from_the_nearest_class() -> None:
    spec = load("gpt2", ["decoder.block.norm.kind=rms_norm"])
    with pytest.raises(NoFamilyError) as caught:
        write_config(spec, "gpt2")
    text = str(caught.value)
    assert text.startswith(
        f"{spec.name} fits no class of gpt2: the nearest is GPT2LMHeadModel, which has no field for\n"
    )
    assert "decoder.layers[*].attention_norm.kind: 'rms_norm' (it has 'layer_norm')" in text


def test_an_unknown_family_is_refused_with_a_suggestion() -> None:
    with pytest.raises(NoFamilyError, match="Family 'lama' is unknown\n  Did you mean 'llama'"):
        write_config(load("gpt2"), "lama")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, 'model_type: is required, as it names the family\n  Add it, such as "model_type": "bert", if'),
        (
            {"architectures": ["LlamaForCausalLM"]},
            'is required, as it names the family\n  Add "model_type": "llama", the family of LlamaForCausalLM.',
        ),
        ({"model_type": "gpt-neox", "vocab_size": -1}, "Did you mean 'gpt_neox'?"),
        ({"model_type": "zaya"}, "queries and keys that are mixed by convolutions"),
        ({"model_type": "internlm2"}, "value: 'internlm2'\n  zoo has no family like it."),
        ({"model_type": "internlm2", "quantization_config": {"quant_method": "?"}}, "model_type: is not a supported"),
        (
            {"model_type": "bert", "architectures": ["JinaBertForMaskedLM"]},
            "must name a supported class of bert\n  value: ['JinaBertForMaskedLM']\n  Choose from: BertModel, ",
        ),
    ],
)  # fmt: skip
def test_other_families_are_no_misspelt_ones(data: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        spec_of_config(Config(data, "config.json"), name="x")
    assert said in str(caught.value)


def test_the_preferred_one_of_equally_fitting_families_is_taken() -> None:
    spec = load("phi-4")
    assert write_config(spec)["model_type"] == "llama"
    assert write_config(spec, preferred="phi3")["model_type"] == "phi3"
    assert write_config(spec, preferred="gpt2")["model_type"] == "llama"


@pytest.mark.parametrize(
    ("name", "model_type"),
    [("t5-small", "t5"), ("qwen3-0.6b", "qwen3"), ("mixtral-8x7b", "mixtral"), ("deepseek-v3", "deepseek_v3")],
)  # fmt: skip
def test_a_family_goes_before_those_that_extend_it(name: str, model_type: str) -> None:
    assert write_config(load(name))["model_type"] == model_type


def test_a_written_config_gives_the_same_architecture() -> None:
    for name in ("gpt2", "bert-base-mlm", "llama-3-8b", "t5-small"):
        spec = load(name)
        config = write_config(spec)
        back = spec_of_config(Config(config, "config.json"), name=name)
        assert not list(differences(canonical(spec), canonical(back)))


# ------------------------------------------------------------------------------------------- equal architectures


@one_in(12)
@pytest.mark.parametrize("name", preset_names())
def test_every_preset_has_an_architecture_that_differs_from_nothing_but_others(name: str) -> None:
    assert not list(differences(canonical(load(name)), canonical(load(name))))


@pytest.mark.parametrize(
    ("name", "assignment"),
    [
        ("gpt2", "decoder.block.attention.head_dim=64"),
        ("gpt2", "decoder.block.attention.scale=0.125"),
        ("gpt2", "decoder.block.attention={kind: grouped_query, kv_heads: 12}"),
        ("gpt2", "decoder.final_norm=true"),
        ("gpt2", "decoder.layers=[{repeat: 5}, {repeat: 7}]"),
        ("gpt2", "decoder.block.dropout=0.5"),
        ("gpt2", "initialization.std=0.5"),
        ("llama-2-7b", "position.dimensions=128"),
        ("llama-2-7b", "context_length=7"),
        ("transformer-base", "embedding.scale=22.627416997969522"),
    ],
)
def test_equivalent_specs_are_equal(name: str, assignment: str) -> None:
    assert not list(differences(canonical(load(name)), canonical(load(name, [assignment]))))


@pytest.mark.parametrize(
    ("scaling", "amplitude"),
    [
        ("{kind: yarn, factor: 4.0, original_context_length: 1024", 0.1 * math.log(4.0) + 1.0),
        (
            f"{{kind: longrope, short_factor: {[1.0] * 64}, long_factor: {[2.0] * 64}, original_context_length: 512",
            math.sqrt(1 + math.log(4096 / 512) / math.log(512)),
        ),
    ],
)
def test_an_amplitude_that_is_stated_as_it_would_be_anyway_changes_nothing(
    scaling: str, amplitude: float
) -> None:
    unsaid = load("llama-2-7b", [f"position.scaling={scaling}}}"])
    stated = load("llama-2-7b", [f"position.scaling={scaling}, attention_factor: {amplitude}}}"])
    assert not list(differences(canonical(unsaid), canonical(stated)))
    other = load("llama-2-7b", [f"position.scaling={scaling}, attention_factor: 1.5}}"])
    assert {path[-1] for path, _, _ in differences(canonical(unsaid), canonical(other))} == {
        "attention_factor"
    }


@pytest.mark.parametrize(
    ("name", "assignment", "path"),
    [
        ("gpt2", "decoder.block.attention.scale=1", ("decoder", "layers", 0, "attention", "scale")),
        ("gpt2", "context_length=7", ("decoder", "context_length")),
        ("llama-2-7b", "position.dimensions=64", ("decoder", "layers", 0, "attention", "position", "dimensions")),
        ("gpt2", "decoder.final_norm=false", ("decoder", "final_norm")),
        ("gpt2", "head.tie_embeddings=false", ("head", "tie_embeddings")),
        ("gpt2", "decoder.layers=11", ("decoder", "layers")),
    ],
)  # fmt: skip
def test_specs_of_two_models_differ_where_they_do(name: str, assignment: str, path: Any) -> None:
    found = [place for place, _, _ in differences(canonical(load(name)), canonical(load(name, [assignment])))]
    assert path in found


# ------------------------------------------------------------------------------------------------------- layers


@pytest.mark.parametrize(
    ("names", "layers"),
    [
        ([None, None], 2),
        (["a", "a"], [{"use": "a", "repeat": 2}]),
        (["a", None, "a", None], [{"pattern": [{"use": "a"}, {"repeat": 1}], "repeat": 2}]),
        (["a", "a", None, "a", "a", None, "a"], [{"pattern": [{"use": "a", "repeat": 2}, {"repeat": 1}], "repeat": 2}, {"use": "a"}]),
        (["a", None, None], [{"use": "a"}, {"repeat": 2}]),
        (["a", None] * 5_000, [{"pattern": [{"use": "a"}, {"repeat": 1}], "repeat": 5_000}]),
    ],
)  # fmt: skip
def test_layers_become_the_shortest_pattern(names: Any, layers: Any) -> None:
    assert pattern(names) == layers


@pytest.mark.parametrize("kinds", list(itertools.product(["full_attention", "sliding_attention"], repeat=3)))
def test_layers_that_vary_in_two_respects_are_written(kinds: tuple[str, ...]) -> None:
    for mixtures in ([0, 1, 2], [0], [2], [1, 2]):
        dense = [layer for layer in range(3) if layer not in mixtures]
        fields = {"num_hidden_layers": 3, "layer_types": list(kinds), "use_sliding_window": True}
        fields |= {"model_type": "qwen2_moe", "architectures": ["Qwen2MoeForCausalLM"]}
        spec = read(**fields, mlp_only_layers=dense)
        assert write_config(spec, "qwen2_moe")["mlp_only_layers"] == dense


FAMILIES_WITH_MIXERS = {
    "lfm2-350m": ["lfm2", "lfm2_moe", "lfm3"],
    "qwen3-next-80b-a3b": ["qwen3_next", "qwen3_5_moe_text"],
    "kimi-linear-48b-a3b": ["kimi_linear"],
    "mamba-130m": ["mamba"],
    "mamba2-130m": ["mamba2"],
    "granite-4.0-h-tiny": ["granitemoehybrid"],
    "nemotron-h-8b": ["nemotron_h"],
    "jamba-v0.1": ["jamba"],
    "recurrentgemma-2b": ["recurrent_gemma"],
}


@pytest.mark.parametrize("name", FAMILIES_WITH_MIXERS)
def test_families_without_a_mixer_say_so(name: str) -> None:
    spec, fitting = load(name), []
    for model_type in MODEL_TYPES:
        with suppress(NoFamilyError):
            fitting.append(write_config(spec, model_type)["model_type"])
    assert fitting == FAMILIES_WITH_MIXERS[name]


OF_OTHERS = {"modnet", "supertonic", "minimax_m3", "nemotron-nas", "mluke", "time_moe"}
"""Types that only transformers.js has, or only published code."""


def test_what_is_inexpressible_is_a_family_that_is_not_supported() -> None:
    assert set(INEXPRESSIBLE) <= {*CONFIG_MAPPING, *OF_OTHERS}
    assert not set(INEXPRESSIBLE) & set(MODEL_TYPES)
    assert len(INEXPRESSIBLE) >= 130
    for model_type, because in INEXPRESSIBLE.items():
        with pytest.raises(ConfigError, match=re.escape(because)):
            read(model_type=model_type)


@pytest.mark.parametrize(
    ("model_type", "words"),
    [
        ("llama4_text", ["attention", "chunked_attention"]),
        ("qwen3", ["attention", "sliding_attention"]),
        ("lfm2", ["attention", "conv"]),
        ("qwen3_next", ["mamba", "attention"]),
    ],
)
def test_words_of_earlier_configs_for_layers_are_those_of_the_reference(
    model_type: str, words: list[str]
) -> None:
    config = {"model_type": model_type, "num_hidden_layers": 2, "use_sliding_window": True}
    today = CONFIG_MAPPING[model_type](layer_types=words, num_hidden_layers=2).layer_types
    assert today != words
    old, new = (
        spec_of_config(Config({**config, "layer_types": types}, "config.json"), name="x")
        for types in (words, today)
    )
    assert old == new
