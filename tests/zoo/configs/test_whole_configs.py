"""Published config files, whole: what programs wrote into them and no model reads is no reason to refuse them.

Each was read from the repository of its model on the Hugging Face Hub: Salesforce/blip-image-captioning-base,
openai/clip-vit-large-patch14, the text model of google/gemma-4-26B-A4B, nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B and
moonshotai/Kimi-K2-Instruct.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoConfig

from specs.forms.canonical import canonical, differences
from specs.kinds.position import NoPosition
from specs.language.load import load
from tests.parity.families.as_stated import CONFIGS, difference_from, reference_of, spec_of
from zoo.configs.importing import import_spec
from zoo.families.common.config_errors import ConfigError

FILES = sorted(Path(__file__).with_name("whole_configs").glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_whole_files_are_read(path: Path) -> None:
    told: list[str] = []
    spec = import_spec(path, tell=told.extend)
    assert told == (["norm_eps"] if "nemotron" in path.stem else [])
    assert spec.last_stack.depth == {"blip": 12, "clip": 12, "gemma": 30, "kimi": 61, "nemotron": 52}[
        path.stem.split("-")[0]
    ]  # fmt: skip


def test_the_second_config_of_a_text_goes_before_the_first() -> None:
    path = next(path for path in FILES if path.stem.startswith("clip"))
    spec, config = import_spec(path), AutoConfig.from_pretrained(path)
    assert spec.text is not None
    assert spec.text.head is not None
    assert spec.text.head.model_dump()["pooling"] == {"token": config.text_config.eos_token_id}
    assert config.text_config.eos_token_id == 49407
    assert spec.image is not None
    assert spec.width_of(spec.image) == config.vision_config.hidden_size


def _gemma4(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(CONFIGS["gemma4_text"]), **changes}


def test_layers_are_named_with_zeros_before_them() -> None:
    """As transformers 5.24 writes them."""
    data = _gemma4()
    stated = data["per_layer_config"]
    padded = {f"{int(name):02d}": value for name, value in stated.items()}
    assert spec_of({**data, "per_layer_config": padded}) == spec_of(data)


def test_images_that_are_seen_both_ways_change_nothing_for_text(tmp_path: Path) -> None:
    reference = reference_of(_gemma4(use_bidirectional_attention="vision"), tmp_path)
    assert difference_from(reference, tmp_path) <= 2e-5
    with pytest.raises(ConfigError, match="use_bidirectional_attention: must be null"):
        spec_of(_gemma4(use_bidirectional_attention="all"))


def test_a_position_that_no_layer_uses_is_none(tmp_path: Path) -> None:
    data = {**copy.deepcopy(CONFIGS["bamba"]), "attn_layer_indices": []}
    spec = spec_of(data)
    assert isinstance(spec.position, NoPosition)


@pytest.mark.parametrize(
    ("model_type", "changes"),
    [
        ("llama4_text", {"attention_chunk_size": 1}),
        ("qwen3_moe", {"num_experts_per_tok": 1, "norm_topk_prob": True}),
        ("qwen3_moe", {"num_experts": 1, "num_local_experts": 1, "num_experts_per_tok": 1}),
        ("mixtral", {"num_local_experts": 1, "num_experts_per_tok": 1}),
        ("deepseek_v3", {"rope_parameters": {"rope_type": "yarn", "rope_theta": 300.0, "factor": 4.0, "beta_fast": 1.0,
                                             "beta_slow": 1.0, "original_max_position_embeddings": 16}}),
    ],
)  # fmt: skip
def test_what_nobody_would_design_is_read(model_type: str, changes: dict[str, Any], tmp_path: Path) -> None:
    reference = reference_of({**copy.deepcopy(CONFIGS[model_type]), **changes}, tmp_path)
    assert difference_from(reference, tmp_path) <= 2e-5


@pytest.mark.parametrize(
    ("stem", "preset"), [("kimi-k2", "kimi-k2"), ("nemotron-3-nano-30b", "nemotron-3-nano-30b-a3b")]
)
def test_it_reads_as_the_preset(stem: str, preset: str) -> None:
    imported = import_spec(next(path for path in FILES if path.stem == stem))
    assert list(differences(canonical(load(preset)), canonical(imported))) == []
