"""LoRA adapters on the layouts of their bases: transposed matrices, tied and changed embeddings, several graphs, damaged settings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
import transformers
from peft import PeftModel
from safetensors.torch import load_file, save_file

from exporters.export import export
from exporters.steps.options import ExportOptions
from specs.base.errors import UserError
from tests.parity.reference import assert_close
from tests.parity.test_lora import BASES, IDS, LLAMA, base, logits, tuned
from zoo import adapt
from zoo.configs.importing import import_spec
from zoo.weights.lora import LoraAdapter
from zoo.weights.source import WeightError

__all__ = ["base"]

BASES["tied"] = (
    transformers.LlamaForCausalLM,
    transformers.LlamaConfig,
    {**LLAMA, "tie_word_embeddings": True},
)
BASES["t5"] = (
    transformers.T5ForConditionalGeneration,
    transformers.T5Config,
    {"vocab_size": 31, "d_model": 24, "d_kv": 6, "d_ff": 40, "num_layers": 1, "num_heads": 4, "decoder_start_token_id": 0},
)  # fmt: skip


def changed(adapter: Path, **settings: Any) -> None:
    """Change the settings of an adapter."""
    path = adapter / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))


@pytest.mark.parametrize(
    ("name", "module", "stated"), [("gpt2", "attn.c_proj", False), ("llama", "o_proj", True)]
)
def test_a_square_matrix_is_changed_as_the_base_stores_it(
    base: Callable[[str], Path], tmp_path: Path, name: str, module: str, stated: bool
) -> None:
    """PEFT goes by the base's modules, whatever fan_in_fan_out says."""
    directory = base(name)
    tuned(directory, tmp_path / "adapter", name, r=2, target_modules=[module])
    changed(tmp_path / "adapter", fan_in_fan_out=stated)
    (tmp_path / "merged").mkdir()
    adapt(import_spec(directory), str(directory), tmp_path / "merged", merge=str(tmp_path / "adapter"))
    model = PeftModel.from_pretrained(BASES[name][0].from_pretrained(directory), str(tmp_path / "adapter"))
    with torch.no_grad():
        assert_close(logits(tmp_path / "merged"), model.eval()(input_ids=IDS).logits)


@pytest.mark.parametrize("dora", [False, True])
def test_changed_embeddings_are_merged_although_peft_stores_the_unchanged_ones(
    base: Callable[[str], Path], tmp_path: Path, dora: bool
) -> None:
    directory = base("llama")
    settings = {"r": 2, "use_dora": dora, "target_modules": ["embed_tokens"]}
    model = tuned(directory, tmp_path / "adapter", "llama", **settings)
    assert any("base_layer" in name for name in load_file(tmp_path / "adapter" / "adapter_model.safetensors"))
    (tmp_path / "merged").mkdir()
    adapt(import_spec(directory), str(directory), tmp_path / "merged", merge=str(tmp_path / "adapter"))
    with torch.no_grad():
        assert_close(logits(tmp_path / "merged"), model(input_ids=IDS).logits)


@pytest.mark.parametrize(
    ("name", "settings", "stored", "uses"),
    [
        ("tied", {"target_modules": ["embed_tokens"]}, "model.embed_tokens.weight", "embedding.token.weight and head.vocabulary.weight"),
        ("tied", {"target_modules": ["lm_head"]}, "lm_head.weight", "embedding.token.weight and head.vocabulary.weight"),
        ("tied", {"target_modules": ["q_proj"], "modules_to_save": ["lm_head"]}, "lm_head.weight",
         "embedding.token.weight and head.vocabulary.weight"),
        ("gpt2", {"target_modules": ["wte"]}, "transformer.wte.weight", "embedding.token.weight and head.vocabulary.weight"),
        ("t5", {"target_modules": ["shared"]}, "shared.weight",
         "encoder_embedding.token.weight, decoder_embedding.token.weight and head.vocabulary.weight"),
    ],
)  # fmt: skip
def test_a_change_of_one_use_of_tied_embeddings_is_refused(
    base: Callable[[str], Path], tmp_path: Path, name: str, settings: dict[str, Any], stored: str, uses: str
) -> None:
    directory = base(name)
    tuned(directory, tmp_path / "adapter", name, r=2, **settings)
    said = (
        f"The adapter {tmp_path / 'adapter'} changes {stored}, which the base ties: {uses} are one tensor\n"
        "  Save the base with tie_word_embeddings=False and pass that, or merge the adapter with PEFT."
    )
    with pytest.raises(UserError, match=re.escape(said)):
        adapt(import_spec(directory), str(directory), tmp_path / "merged", merge=str(tmp_path / "adapter"))
    options = ExportOptions.of(weights=str(directory), adapters=[f"a={tmp_path / 'adapter'}"])
    with pytest.raises(UserError, match=re.escape(said)):
        export(import_spec(directory), tmp_path / "x", options)


def test_a_head_that_peft_stores_unchanged_can_be_switched(
    base: Callable[[str], Path], tmp_path: Path
) -> None:
    directory = base("llama")
    tuned(directory, tmp_path / "adapter", "llama", r=2, target_modules=["lm_head", "q_proj"])
    options = ExportOptions.of(weights=str(directory), adapters=[f"a={tmp_path / 'adapter'}"])
    written = export(import_spec(directory), tmp_path / "x", options)
    assert 0 < (written.build.adapters["a"].largest or 0) < 1e-3


@pytest.mark.slow
def test_the_card_switches_an_adapter_of_several_graphs(base: Callable[[str], Path], tmp_path: Path) -> None:
    """Its own words are run: ONNX Runtime refuses an active adapter with matrices of other graphs."""
    directory = base("t5")
    model = tuned(directory, tmp_path / "adapter", "t5", r=2, target_modules="all-linear")
    options = ExportOptions.of(
        weights=str(directory), adapters=[f"a={tmp_path / 'adapter'}"], layout="optimum"
    )
    export(import_spec(directory), tmp_path / "x", options)
    card = (tmp_path / "x" / "README.md").read_text()
    found = re.search(r"## Adapters\n.*?```python\n(.*?)```", card, re.DOTALL)
    assert found is not None
    code = found[1].replace('"a.onnx_adapter"', repr(str(tmp_path / "x" / "a.onnx_adapter")))
    feeds: dict[str, Any] = {
        "input_ids": IDS.numpy(),
        "attention_mask": np.ones((1, 9), np.int64),
        "encoder_attention_mask": np.ones((1, 9), np.int64),
    }
    outputs: list[Any] = []
    for graph, ids in (("encoder_model", IDS), ("decoder_model", IDS[:, :4])):
        session = onnxruntime.InferenceSession(tmp_path / "x" / f"{graph}.onnx")
        taken = {value.name for value in session.get_inputs()}
        feeds |= {"input_ids": ids.numpy(), **({"encoder_hidden_states": outputs[0]} if outputs else {})}
        names = {
            "session": session,
            "inputs": {key: feeds[key] for key in taken},
            "onnxruntime": onnxruntime,
        }
        exec(code, names)
        outputs = names["outputs"]
    with torch.no_grad():
        assert_close(torch.from_numpy(outputs[0]), model(input_ids=IDS, decoder_input_ids=IDS[:, :4]).logits)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"alpha_pattern": ["q_proj"]}, "alpha_pattern must be an object"),
        ({"alpha_pattern": {"q_(proj": 3}}, "alpha_pattern must have regular expressions: missing \\), unterminated"),
        ({"alpha_pattern": {"q_proj": "3"}}, "alpha_pattern.q_proj must be a number above 0"),
        ({"lora_alpha": float("nan")}, "lora_alpha must be a number above 0"),
        ({"kasa_config": {"beta": 1}}, "kasa_config is not supported, as it removes directions"),
        ({"monteclora_config": {"n": 2}}, "monteclora_config is not supported, as it draws several changes"),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(
    base: Callable[[str], Path], tmp_path: Path, settings: dict[str, Any], words: str
) -> None:
    tuned(base("llama"), tmp_path / "adapter", "llama", r=2, target_modules=["q_proj"])
    changed(tmp_path / "adapter", **settings)
    with pytest.raises(WeightError, match=words):
        LoraAdapter.open(tmp_path / "adapter")


def test_wrong_tensors_are_refused(base: Callable[[str], Path], tmp_path: Path) -> None:
    tuned(base("llama"), tmp_path / "adapter", "llama", r=2, target_modules=["q_proj"], use_dora=True)
    file = tmp_path / "adapter" / "adapter_model.safetensors"
    tensors = load_file(file)
    save_file({name: tensor[:1] if "magnitude" in name else tensor for name, tensor in tensors.items()}, file)
    with pytest.raises(WeightError, match=r"must be one for each of its 24 outputs\n  value: 1"):
        LoraAdapter.open(tmp_path / "adapter")
    save_file({name: tensor.int() if "_B" in name else tensor for name, tensor in tensors.items()}, file)
    with pytest.raises(WeightError, match=r"lora_B.weight has dtype I32; weights must be"):
        LoraAdapter.open(tmp_path / "adapter")
