"""LoRA adapters of PEFT, merged: the outputs are those of PEFT's model with the adapter."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
import transformers
from peft import LoraConfig, get_peft_model
from torch import Tensor
from typer.testing import CliRunner

from cli.app import app
from specs.base.errors import UserError
from tests.parity.reference import assert_close, build, load
from zoo.adapting.adapt import adapt
from zoo.configs.importing import import_spec
from zoo.weights.lora import LoraAdapter
from zoo.weights.source import WeightError

IDS = torch.arange(9)[None]
LLAMA = {
    "vocab_size": 31,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
BERT = {**LLAMA, "num_labels": 3}
GPT2 = {"vocab_size": 31, "n_embd": 24, "n_layer": 2, "n_head": 4}
BASES: dict[str, tuple[Any, Any, Any]] = {
    "llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig, LLAMA),
    "gpt2": (transformers.GPT2LMHeadModel, transformers.GPT2Config, GPT2),
    "bert": (transformers.BertForSequenceClassification, transformers.BertConfig, BERT),
    "phi3": (transformers.Phi3ForCausalLM, transformers.Phi3Config, {**LLAMA, "pad_token_id": 0}),
}


@pytest.fixture
def base(tmp_path: Path) -> Callable[[str], Path]:
    """The directory of a small base model."""

    def made(name: str) -> Path:
        model, config, settings = BASES[name]
        build(model, config(**settings), 3).save_pretrained(tmp_path / name)
        return tmp_path / name

    return made


def tuned(directory: Path, place: Path, name: str, **settings: Any) -> Any:
    """A model with an adapter of random matrices, which is saved."""
    torch.manual_seed(4)
    model = get_peft_model(BASES[name][0].from_pretrained(directory), LoraConfig(**settings))
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in (parameter for parameter in model.parameters() if parameter.requires_grad):
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    model.save_pretrained(str(place))
    return model.eval()


def logits(directory: Path) -> Tensor:
    """What our model gives for a checkpoint."""
    with torch.no_grad():
        return load(import_spec(directory), directory)(IDS).logits


SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("llama", {"r": 2, "target_modules": ["q_proj", "v_proj"]}),
    ("llama", {"r": 3, "lora_alpha": 16, "use_rslora": True, "target_modules": "all-linear"}),
    ("llama", {"r": 2, "use_dora": True, "target_modules": ["o_proj", "down_proj"]}),
    ("llama", {"r": 4, "rank_pattern": {"q_proj": 2}, "alpha_pattern": {"q_proj": 9, "layers.1.mlp.up_proj": 3},
               "target_modules": ["q_proj", "up_proj"]}),
    ("llama", {"r": 2, "target_modules": ["embed_tokens", "k_proj"], "layers_to_transform": [1]}),
    ("llama", {"r": 2, "target_modules": ["q_proj"], "modules_to_save": ["lm_head"]}),
    ("gpt2", {"r": 2, "target_modules": ["c_attn", "c_proj"], "fan_in_fan_out": True}),
    ("gpt2", {"r": 2, "use_dora": True, "target_modules": ["c_attn"], "fan_in_fan_out": True}),
    ("bert", {"r": 2, "task_type": "SEQ_CLS", "target_modules": ["query", "dense"]}),
    ("bert", {"r": 2, "bias": "all", "target_modules": ["query"]}),
    ("phi3", {"r": 2, "target_modules": ["qkv_proj", "gate_up_proj"]}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "settings"), SETTINGS)
def test_merged_weights_are_those_of_peft(
    base: Callable[[str], Path], tmp_path: Path, name: str, settings: dict[str, Any]
) -> None:
    directory = base(name)
    model = tuned(directory, tmp_path / "adapter", name, **settings)
    (tmp_path / "merged").mkdir()
    adapt(import_spec(directory), str(directory), tmp_path / "merged", merge=str(tmp_path / "adapter"))
    with torch.no_grad():
        expected = model(input_ids=IDS).logits
    assert (expected - logits(directory)).abs().max() > 0.01
    assert_close(logits(tmp_path / "merged"), expected)


def test_the_command_merges(base: Callable[[str], Path], tmp_path: Path) -> None:
    directory = base("llama")
    model = tuned(directory, tmp_path / "adapter", "llama", r=2, target_modules=["q_proj"])
    arguments = [
        "adapt",
        str(directory),
        "--merge",
        str(tmp_path / "adapter"),
        "-o",
        str(tmp_path / "merged"),
    ]
    found = CliRunner().invoke(app, arguments, prog_name="zoo")
    assert found.exit_code == 0, found.output
    with torch.no_grad():
        torch.testing.assert_close(
            logits(tmp_path / "merged"), model(input_ids=IDS).logits, atol=1e-5, rtol=1e-5
        )


def test_an_adapter_for_another_base_is_refused(base: Callable[[str], Path], tmp_path: Path) -> None:
    tuned(base("llama"), tmp_path / "adapter", "llama", r=2, target_modules=["q_proj"])
    directory = base("gpt2")
    with pytest.raises(UserError) as caught:
        adapt(import_spec(directory), str(directory), tmp_path, merge=str(tmp_path / "adapter"))
    assert (
        "fits another base model\n  model.layers.0.self_attn.q_proj.weight: the base has no such tensor"
        in str(caught.value)
    )
    wide = build(transformers.LlamaForCausalLM, transformers.LlamaConfig(**{**LLAMA, "hidden_size": 48}), 3)
    wide.save_pretrained(tmp_path / "wide")
    with pytest.raises(UserError, match=r"q_proj.weight: a change for 24 x 24, and the base has 48 x 48"):
        adapt(
            import_spec(tmp_path / "wide"), str(tmp_path / "wide"), tmp_path, merge=str(tmp_path / "adapter")
        )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"peft_type": "IA3"}, "peft_type must be LORA to be merged"),
        ({"lora_bias": True}, "lora_bias is not supported, as it adds to biases"),
        ({"target_parameters": ["experts"]}, "target_parameters is not supported, as it changes stacked matrices"),
        ({"init_lora_weights": "pissa"}, "as it changes the base model's weights"),
        ({"r": "two"}, "r must be a number above 0"),
        ({"lora_alpha": 0}, "lora_alpha must be a number above 0"),
    ],
)  # fmt: skip
def test_adapters_of_other_kinds_are_refused(
    base: Callable[[str], Path], tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    tuned(base("llama"), tmp_path / "adapter", "llama", r=2, target_modules=["q_proj"])
    path = tmp_path / "adapter" / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(WeightError, match=words):
        LoraAdapter.open(tmp_path / "adapter")


def test_a_damaged_adapter_is_refused(base: Callable[[str], Path], tmp_path: Path) -> None:
    tuned(base("llama"), tmp_path / "adapter", "llama", r=2, target_modules=["q_proj"])
    file = tmp_path / "adapter" / "adapter_model.safetensors"
    tensors = peft.load_peft_weights(str(tmp_path / "adapter"))
    from safetensors.torch import save_file

    half = {name: tensor for name, tensor in tensors.items() if "lora_A" in name}
    save_file(half, file)
    with pytest.raises(WeightError, match="has one of the matrices A and B alone"):
        LoraAdapter.open(tmp_path / "adapter")
    save_file(
        {
            name: tensor[:, :1].contiguous() if "lora_B" in name else tensor
            for name, tensor in tensors.items()
        },
        file,
    )
    with pytest.raises(WeightError, match="have no product\n  value: 2 x 24 and 24 x 1"):
        LoraAdapter.open(tmp_path / "adapter")
    file.unlink()
    with pytest.raises(WeightError, match=r"has neither adapter_model.safetensors nor adapter_model.bin"):
        LoraAdapter.open(tmp_path / "adapter")
    with pytest.raises(WeightError, match=r"has no adapter_config.json"):
        LoraAdapter.open(tmp_path)
