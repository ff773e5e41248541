"""A checkpoint that is converted back to its class keeps fields of the config and tensors that its spec does not describe."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import MiniMaxConfig, MiniMaxForCausalLM

from tests.parity.families.hybrids import test_minimax
from tests.parity.reference import build
from zoo.checkpoints.converting import convert
from zoo.configs.importing import import_spec

NAME = "model.layers.0.self_attn.slope_rate"


@pytest.fixture
def checkpoint(tmp_path):
    """MiniMax, whose block size and decay only the reference computes with."""
    config = test_minimax.TestMiniMax.configured("six factors", block_size=64, use_cache=False)
    build(MiniMaxForCausalLM, config, 1).save_pretrained(tmp_path / "checkpoint")
    return tmp_path / "checkpoint"


def converted(checkpoint, spec=None, **options):
    place = checkpoint.parent / "converted"
    place.mkdir()
    convert(spec or import_spec(checkpoint), str(checkpoint), place, **options)
    return json.loads((place / "config.json").read_text()), load_file(place / "model.safetensors")


def test_the_config_and_every_tensor_stay(checkpoint):
    config, tensors = converted(checkpoint)
    stated = json.loads((checkpoint / "config.json").read_text())
    assert {**config, "dtype": ""} == {**stated, "dtype": ""}
    stored = load_file(checkpoint / "model.safetensors")
    assert NAME in stored
    assert tensors.keys() == stored.keys()
    assert all(torch.equal(tensors[name], stored[name]) for name in stored)
    assert MiniMaxConfig.from_pretrained(checkpoint.parent / "converted").block_size == 64


def test_counters_keep_their_dtype_and_floats_take_that_of_the_weights(checkpoint):
    file = checkpoint / "model.safetensors"
    counters = {
        NAME: torch.tensor(2**40 + 1),
        "model.layers.1.self_attn.slope_rate": torch.tensor([True, False, True]),
    }
    save_file({**load_file(file), **counters}, file, {"format": "pt"})
    _, tensors = converted(checkpoint, dtype="bf16")
    assert all(torch.equal(tensors[name], counters[name]) for name in counters)
    assert tensors["model.layers.3.self_attn.slope_rate"].dtype == torch.bfloat16
    assert tensors["model.norm.weight"].dtype == torch.bfloat16


@pytest.mark.parametrize("change", ["spec", "code", "class"])
def test_another_spec_class_or_code_of_its_own_gets_a_new_config(checkpoint, change):
    """The meaning of the fields is unknown then."""
    stated = json.loads((checkpoint / "config.json").read_text())
    spec = import_spec(checkpoint)
    if change == "spec":
        spec = spec.model_copy(update={"context_length": 64})
    elif change == "code":
        (checkpoint / "config.json").write_text(
            json.dumps({**stated, "auto_map": {"AutoConfig": "code.Config"}})
        )
    else:
        (checkpoint / "config.json").write_text(json.dumps({**stated, "architectures": ["MiniMaxModel"]}))
    config, tensors = converted(checkpoint, spec)
    assert "block_size" not in config
    assert "auto_map" not in config
    assert NAME not in tensors
    assert config["architectures"] == ["MiniMaxForCausalLM"]


def test_fields_of_the_files_are_written_anew(checkpoint):
    stated = json.loads((checkpoint / "config.json").read_text())
    of_files = {"_name_or_path": "elsewhere", "torch_dtype": "float16", "_commit_hash": "abc"}
    (checkpoint / "config.json").write_text(json.dumps({**stated, **of_files}))
    config, _ = converted(checkpoint, dtype="bf16")
    assert config["dtype"] == "bfloat16"
    assert not of_files.keys() & config.keys()
