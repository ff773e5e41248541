"""Adapters of PEFT, alone and beside full weights: every command names them and the way to merge them, which is run here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from tests.cli.program import done, refused
from tests.parity.reference import build, load
from zoo.configs.importing import import_spec
from zoo.weights.adapters import _PROMPTS
from zoo.weights.files import TensorFiles
from zoo.weights.source import WeightError


@pytest.fixture
def checkpoint(tmp_path):
    """A directory with a base model."""
    config = LlamaConfig(
        vocab_size=31, hidden_size=24, intermediate_size=40, num_hidden_layers=1, num_attention_heads=4
    )
    build(LlamaForCausalLM, config, 3).save_pretrained(tmp_path / "base")
    return tmp_path / "base"


def tuned(checkpoint: Path, directory: Path) -> PeftModel:
    """A model with an adapter of its attention, which is saved to a directory."""
    base = AutoModelForCausalLM.from_pretrained(checkpoint)
    settings = LoraConfig(task_type="CAUSAL_LM", r=2, target_modules=["q_proj", "v_proj"])
    model = get_peft_model(base, settings)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora" in name:
                parameter.normal_(0, 0.5)
    model.save_pretrained(str(directory))
    return model.eval()


@pytest.mark.slow
@pytest.mark.parametrize("embedded", [False, True], ids=["alone", "beside full weights"])
def test_the_printed_way_to_merge_works(checkpoint, tmp_path, embedded):
    directory = checkpoint if embedded else tmp_path / "adapter's"
    model = tuned(checkpoint, directory)
    assert (directory / "adapter_model.safetensors").is_file()
    told = refused("import", directory)
    commands = [line.strip() for line in told.splitlines() if line.startswith("    ")]
    assert len(commands) == 1 + embedded
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for command in commands:
        subprocess.run(command, shell=True, check=True, cwd=tmp_path, env=environment)
    merged = tmp_path / f"{directory.name}-merged"
    ids = torch.arange(9)[None]
    with torch.no_grad():
        ours = load(import_spec(merged), merged)(ids).logits
        torch.testing.assert_close(ours, model(input_ids=ids).logits, atol=1e-5, rtol=1e-5)
    if embedded:
        assert refused("import", directory.with_name("base-adapter"))  # still named there
        import_spec(directory)


@pytest.mark.parametrize("embedded", [False, True], ids=["alone", "beside full weights"])
def test_every_command_refuses_it(checkpoint, tmp_path, embedded, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = checkpoint.parent / "spec.yaml"
    done("import", str(checkpoint), "-o", str(spec))
    directory = checkpoint if embedded else tmp_path / "adapter"
    tuned(checkpoint, directory)
    whose = "for the weights beside it" if embedded else f"for '{checkpoint}'"
    named = f"{directory} has a PEFT adapter (adapter_config.json) {whose}, and adapters are not read"
    for arguments in (
        ["import", directory],
        ["export", spec, "--weights", directory],
        ["convert", spec, "--weights", directory, "-o", "out"],
        ["check", spec, "--weights", directory],
        ["run", directory, "--ids", "1"],
        ["report", directory],
        ["export", directory],
        ["check", directory],
    ):
        told = refused(*arguments)
        assert named in " ".join(told.split()), (arguments, told)
        assert "LORA" in told
        assert "zoo adapt" in told
        assert "--merge" in told
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"peft_type": "PROMPT_TUNING"}, "It adds tokens to the input, which cannot be merged into weights"),
        ({"peft_type": None}, "a library other than PEFT"),
        ({"base_model_name_or_path": None}, "for an unnamed base model"),
        ({"task_type": None, "auto_mapping": {"base_model_class": "BertModel"}}, "import BertModel as B"),
        ({"task_type": None}, "import AutoModel as B"),
        (
            {"task_type": None, "auto_mapping": {"base_model_class": "os; os.system('x')"}},
            "import AutoModel as B",
        ),
        ({"task_type": "SEQ_CLS"}, "import AutoModelForSequenceClassification as B"),
        ({"base_model_name_or_path": "org/name"}, "T.from_pretrained("),
    ],
)
def test_what_is_named_of_an_adapter(tmp_path, changes, words):
    stated = {"peft_type": "LOHA", "task_type": "CAUSAL_LM", "base_model_name_or_path": "org/name", **changes}
    (tmp_path / "adapter_config.json").write_text(json.dumps(stated))
    with pytest.raises(WeightError) as caught:
        import_spec(tmp_path)
    assert words in str(caught.value)


def test_the_file_of_an_adapter_is_named_by_its_tensors(checkpoint, tmp_path):
    tuned(checkpoint, tmp_path / "adapter")
    tensors = load_file(tmp_path / "adapter/adapter_model.safetensors")
    save_file(tensors, tmp_path / "other.safetensors")
    with pytest.raises(WeightError, match=r"other.safetensors has the weights of a PEFT adapter"):
        TensorFiles.open(tmp_path / "other.safetensors")
    with pytest.raises(WeightError, match="has a PEFT adapter"):
        TensorFiles.open(tmp_path / "adapter/adapter_model.safetensors")


def test_a_damaged_description_is_named(tmp_path):
    (tmp_path / "adapter_config.json").write_text("{")
    with pytest.raises(WeightError, match=r"adapter_config\.json"):
        import_spec(tmp_path)


def test_the_kinds_that_cannot_be_merged_are_those_of_peft():
    """The others are layers of weights, which PEFT merges."""
    from peft.mapping import PEFT_TYPE_TO_PREFIX_MAPPING, PEFT_TYPE_TO_TUNER_MAPPING

    prompts = {
        kind.value
        for kind, tuner in PEFT_TYPE_TO_TUNER_MAPPING.items()
        if not hasattr(tuner, "merge_and_unload")
    }
    assert PEFT_TYPE_TO_PREFIX_MAPPING
    assert prompts == set(_PROMPTS), prompts
