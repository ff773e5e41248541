"""Values that configs state in unusual ways are read as the reference reads them: nulls, other names, two fields for one thing."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoConfig

from specs.model.model import Model
from tests.parity.families.as_stated import (
    CONFIGS,
    booleans_of,
    difference_from,
    reference_of,
    spec_of,
    stated,
)
from tests.thinned import one_in
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError, UnsupportedFieldsError

TOLERANCE = 2e-5
NULL_IS_TRUE = [("t5", "tie_word_embeddings"), ("umt5", "tie_word_embeddings")]
"""Fields that the reference compares with false."""


def _read(model_type: str, path: str, value: bool | None) -> Model | str:
    """The spec of a config, or why it is refused."""
    try:
        return spec_of(stated(model_type, path, value))
    except ConfigError as error:
        return str(error).split("\n")[0].replace("null", "false")


@pytest.mark.parametrize("model_type", CONFIGS)
def test_a_null_boolean_is_false(model_type: str) -> None:
    for path in booleans_of(CONFIGS[model_type]):
        meant = (model_type, path) in NULL_IS_TRUE
        assert _read(model_type, path, None) == _read(model_type, path, meant), path


@pytest.mark.slow
@pytest.mark.parametrize("model_type", CONFIGS)
def test_a_null_boolean_is_what_it_is_for_the_reference(model_type: str, tmp_path: Path) -> None:
    for number, path in enumerate(booleans_of(CONFIGS[model_type])):
        directory = tmp_path / str(number)
        directory.mkdir()
        try:
            reference = reference_of(stated(model_type, path, None), directory)
        except Exception:  # some fields may not be null
            continue
        try:
            found = difference_from(reference, directory)
        except ConfigError:  # an option that is not supported
            continue
        assert found <= TOLERANCE, path


def _without_rope(model_type: str) -> dict[str, Any]:
    """A family's config in the spelling of before ``rope_parameters``, without any."""
    of_rope = ("rope_parameters", "rope_scaling", "rope_theta")
    return {name: value for name, value in CONFIGS[model_type].items() if name not in of_rope}


LINEAR, YARN = {"rope_type": "linear", "factor": 2.0}, {"rope_type": "yarn", "factor": 4.0}
NAMES: tuple[tuple[str, dict[str, Any], list[str]], ...] = (
    ("gpt_neox", {"rotary_emb_base": 500}, []),
    ("gpt_neox", {"rope_theta": 500.0}, ["rope_theta"]),
    ("llama", {"rotary_emb_base": 500, "rotary_pct": 0.5}, ["rotary_emb_base", "rotary_pct"]),
    ("llama", {"rope_parameters": {"rope_theta": 300.0}, "rope_scaling": LINEAR}, []),
    ("qwen3_next", {"rotary_pct": 0.5}, ["rotary_pct"]),
    ("phi3", {"rotary_pct": 0.5}, ["rotary_pct"]),
    ("modernbert", {"rope_theta": 77.0}, ["rope_theta"]),
    ("modernbert", {"rope_theta": 77.0, "global_rope_theta": 55.0}, ["rope_theta"]),
    ("modernbert-decoder", {"rope_theta": 77.0, "local_rope_theta": 33.0}, ["rope_theta"]),
    ("gemma4_text", {"rope_theta": 77.0}, ["rope_theta"]),
    ("gemma3_text", {"rope_theta": 77.0, "rope_local_base_freq": 33.0}, []),
    ("olmo3", {"rope_theta": 77.0, "rope_scaling": LINEAR}, []),
    ("olmo3", {"rope_scaling": YARN, "original_max_position_embeddings": 8}, ["original_max_position_embeddings"]),
)  # fmt: skip
"""Fields of rotary positions in a config that has no others, and those that the reference does not read."""


@one_in(3)
@pytest.mark.parametrize(("model_type", "fields", "unread"), NAMES)
def test_names_of_rotary_positions(
    model_type: str, fields: dict[str, Any], unread: list[str], tmp_path: Path
) -> None:
    data = _without_rope(model_type) | copy.deepcopy(fields)
    told: list[str] = []
    reference = reference_of(data, tmp_path)
    spec_of_config(Config(data, "config.json"), name="tiny", tell=told.extend)
    assert set(unread) <= set(told)
    assert difference_from(reference, tmp_path) <= TOLERANCE


ROTATED = [
    model_type for model_type, data in CONFIGS.items() if "rope_theta" in data.get("rope_parameters", {})
]


@pytest.mark.slow
@pytest.mark.parametrize("model_type", ROTATED)
def test_the_base_of_gpt_neox_is_that_of_gpt_neox_alone(model_type: str, tmp_path: Path) -> None:
    stated = CONFIGS[model_type]["rope_parameters"]
    share = {name: stated[name] for name in ("partial_rotary_factor",) if name in stated}
    data = {**_without_rope(model_type), **share, "rotary_emb_base": 500}
    reference = reference_of(data, tmp_path)
    assert difference_from(reference, tmp_path) <= TOLERANCE


TWICE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("gpt_neo", {"attention_layers": ["local", "global", "global", "local"]}),
    *((family, {"dense_act_fn": "silu"}) for family in ("t5", "mt5", "umt5", "longt5")),
    *((family, {"is_gated_act": True}) for family in ("t5", "mt5", "umt5", "longt5")),
    *((family, {"feed_forward_proj": "gated-silu"}) for family in ("t5", "mt5", "umt5", "longt5")),
    ("t5", {"scale_decoder_outputs": False}),
    ("gemma3_text", {"sliding_window_pattern": 2}),
    ("qwen3_next", {"full_attention_interval": 2}),
    ("llama4_text", {"no_rope_layer_interval": 1}),
    ("lfm2", {"full_attn_idxs": [0]}),
)
"""Two fields that state one thing, of which one contradicts the other."""


@one_in(3)
@pytest.mark.parametrize(("model_type", "fields"), TWICE)
def test_the_field_that_the_reference_reads_decides(
    model_type: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    reference = reference_of({**CONFIGS[model_type], **fields}, tmp_path)
    assert difference_from(reference, tmp_path) <= TOLERANCE


@pytest.mark.parametrize(
    ("model_type", "fields", "said"),
    [
        ("xglm", {"attention_heads": 3, "num_attention_heads": 6}, "num_attention_heads: must equal attention_heads"),
        ("mixtral", {"num_local_experts": 5, "num_experts": 6}, "num_experts: must equal num_local_experts"),
        ("olmo3", {"rope_scaling": {"type": "linear", "factor": 2.0}}, "must be called rope_type"),
        ("olmo3", {"rope_scaling": {**YARN, "truncate": False}}, "truncate: must be true"),
        ("gemma3_text", {"rope_scaling": {**YARN, "truncate": None}}, "truncate: must be true"),
    ],
)  # fmt: skip
def test_contradictions_are_refused(model_type: str, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        spec_of({**_without_rope(model_type), **fields})


@pytest.mark.parametrize("model_type", [name for name, data in CONFIGS.items() if "text_config" in data])
def test_tables_are_tied_where_the_reference_reads_that_they_are(model_type: str) -> None:
    """In the config of the whole, or in that of the decoder, too."""
    data = copy.deepcopy(CONFIGS[model_type])
    data["tie_word_embeddings"], data["text_config"]["tie_word_embeddings"] = False, True
    reference = AutoConfig.for_model(**copy.deepcopy(data))
    try:
        head = spec_of(data).head
    except ConfigError as error:
        assert "tie_word_embeddings: must be true" in str(error)  # noqa: PT017 - a table is always tied
        return
    assert getattr(head, "tie_embeddings", False) == reference.tie_word_embeddings


OF_TRANSFORMERS_4: dict[str, Any] = {
    "_name_or_path": "", "_attn_implementation_autoset": True, "add_cross_attention": False, "architectures": None,
    "bad_words_ids": None, "begin_suppress_tokens": None, "chunk_size_feed_forward": 0,
    "cross_attention_hidden_size": None, "decoder_start_token_id": None, "diversity_penalty": 0.0, "do_sample": False,
    "dropout": 0.0, "early_stopping": False, "encoder_no_repeat_ngram_size": 0, "exponential_decay_length_penalty": None,
    "finetuning_task": None, "forced_bos_token_id": None, "is_decoder": False, "is_encoder_decoder": False,
    "length_penalty": 1.0, "max_length": 20, "no_repeat_ngram_size": 0, "num_beam_groups": 1, "num_beams": 1,
    "output_attentions": False, "prefix": None, "problem_type": None, "pruned_heads": {}, "remove_invalid_values": False,
    "repetition_penalty": 1.0, "return_dict": True, "suppress_tokens": None, "task_specific_params": None,
    "temperature": 1.0, "tf_legacy_loss": False, "tie_encoder_decoder": False, "tokenizer_class": None, "top_k": 50,
    "top_p": 1.0, "torch_dtype": "float32", "torchscript": False, "typical_p": 1.0, "use_bfloat16": False,
}  # fmt: skip
"""Fields that transformers 4 wrote into each config inside a config."""


def _inner(data: dict[str, Any]) -> Iterator[str]:
    return (
        name
        for name in data
        if name.endswith(("_config", "encoder", "decoder")) and isinstance(data[name], dict)
    )


COMPOSITE = [
    name for name, data in CONFIGS.items() if any(_inner(data)) and name not in ("gemma4_text", "mpt")
]


@pytest.mark.parametrize("model_type", COMPOSITE)
def test_configs_inside_configs_as_transformers_4_wrote_them(model_type: str) -> None:
    data = copy.deepcopy(CONFIGS[model_type])
    for name in _inner(data):
        data[name] = {**OF_TRANSFORMERS_4, **data[name]}
    assert spec_of(data) == spec_of(CONFIGS[model_type])


@pytest.mark.parametrize("model_type", COMPOSITE)
def test_fields_of_configs_inside_configs_can_be_ignored(model_type: str) -> None:
    inner = list(_inner(CONFIGS[model_type]))
    data, known = copy.deepcopy(CONFIGS[model_type]), "attention_chunk_size"
    for name in inner:
        data[name] |= {known: 7, "pruned_heads": {"0": [1]}, "of_no_reference": 1}
    ignored = [f"{name}.{field}" for name in inner for field in (known, "pruned_heads")]
    with pytest.raises(UnsupportedFieldsError) as refused:
        spec_of(data)
    told: list[str] = []
    spec_of_config(Config(data, "config.json"), name="tiny", ignored=ignored, tell=told.extend)
    assert set(refused.value.fields) <= set(ignored)
    assert set(told) >= {f"{name}.of_no_reference" for name in inner}
