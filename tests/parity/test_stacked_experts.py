"""Experts as transformers 5 holds them: one tensor per layer, in files of PEFT, FSDP and ``save_original_format=False``."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

from tests.parity.reference import build, load
from zoo.checkpoints.converting import convert
from zoo.configs.importing import import_spec
from zoo.weights.source import WeightError

DOWN = "model.layers.0.mlp.experts.down_proj"


@pytest.fixture
def reference(tmp_path):
    config = Qwen3MoeConfig(
        vocab_size=50, hidden_size=12, intermediate_size=20, moe_intermediate_size=7, num_hidden_layers=2, head_dim=6,
        num_attention_heads=2, num_key_value_heads=1, num_experts=3, num_experts_per_tok=2,
    )  # fmt: skip
    config._experts_implementation = "eager"
    model = build(Qwen3MoeForCausalLM, config, 1)
    model.save_pretrained(tmp_path / "held", save_original_format=False)
    return model


def test_scores_are_those_of_the_reference(reference, tmp_path):
    assert load_file(tmp_path / "held" / "model.safetensors")[DOWN].shape == (3, 12, 7)
    ids = torch.arange(9)[None]
    ours = load(import_spec(tmp_path / "held"), tmp_path / "held")
    with torch.no_grad():
        torch.testing.assert_close(ours(ids).logits, reference(ids).logits)


def test_convert_writes_a_tensor_per_expert(reference, tmp_path):
    (tmp_path / "out").mkdir()
    convert(import_spec(tmp_path / "held"), str(tmp_path / "held"), tmp_path / "out")
    reference.save_pretrained(tmp_path / "published")
    written = load_file(tmp_path / "out" / "model.safetensors")
    for name, values in load_file(tmp_path / "published" / "model.safetensors").items():
        assert torch.equal(written.pop(name), values), name
    assert not written


@pytest.mark.parametrize("change", ["shape", "missing", "both layouts"])
def test_faults_are_named(reference, tmp_path, change):
    file = tmp_path / "held" / "model.safetensors"
    tensors = load_file(file)
    fault = f"of another shape: {DOWN} is 4 x 12 x 7, and decoder.blocks.0.feed_forward.experts.down.weight needs 3 x 12 x 7"
    if change == "shape":
        tensors[DOWN] = torch.zeros(4, 12, 7)
    elif change == "missing":
        del tensors[DOWN]
        fault = "missing: layers.0.mlp.experts.0.down_proj.weight"
    else:
        tensors |= {f"model.layers.0.mlp.experts.{e}.down_proj.weight": torch.zeros(12, 7) for e in range(3)}
        fault = f"unused: {DOWN}"
    save_file(tensors, file, {"format": "pt"})
    with pytest.raises(WeightError) as caught:
        load(import_spec(tmp_path / "held"), tmp_path / "held")
    assert fault in str(caught.value)
