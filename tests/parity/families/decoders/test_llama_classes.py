"""The families whose configs transformers computes with Llama's classes: EXAONE 3, InternLM 3 and IQuest-Coder."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file

from tests.parity.families.llamas import DYNAMIC, LLAMA3, LlamaTests, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD
from tests.parity.reference import build, load
from zoo.configs.importing import import_spec


class LlamaClassTests(LlamaTests):
    """A family of Llama's class with a config class of its own."""

    config_class: ClassVar[type[hf.PreTrainedConfig]]

    @classmethod
    def config(cls, **values: Any) -> Any:
        return cls.config_class(**{**cls.defaults, **values})


class TestExaone(LlamaClassTests):
    model_class = hf.LlamaForCausalLM
    config_class = hf.ExaoneConfig
    configs = {
        "grouped": dict(
            vocab_size=61, hidden_size=60, num_layers=3, num_attention_heads=6, num_key_value_heads=2,
            intermediate_size=41, layer_norm_epsilon=1e-3, rope_parameters=LLAMA3,
        ),
        "tied": dict(
            vocab_size=47, hidden_size=40, num_layers=2, num_attention_heads=5, num_key_value_heads=5,
            intermediate_size=50, activation_function="gelu_new", tie_word_embeddings=True,
            rope_parameters=rotation(500.0),
        ),
    }  # fmt: skip
    refusals = (
        ("hidden_act", "swiglu", "Did you mean 'silu'?"),
        ("num_layers", 7, "must equal num_hidden_layers"),
    )


class TestInternLM3(LlamaClassTests):
    model_class = hf.LlamaForCausalLM
    config_class = hf.InternLM3Config
    configs = {
        "grouped": dict(GROUPED, head_dim=12, rope_parameters=DYNAMIC),
        "biases": dict(MULTI_HEAD, head_dim=8, qkv_bias=True, bias=True, rope_parameters=rotation(500.0)),
    }  # fmt: skip
    refusals = (("attention_bias", True, "attention_bias: must equal mlp_bias, which is false"),)


class TestIQuestCoder(LlamaClassTests):
    model_class = hf.LlamaForCausalLM
    config_class = hf.IQuestCoderConfig
    configs = {
        "grouped": dict(GROUPED, head_dim=12, rope_parameters=rotation(500.0)),
    }  # fmt: skip
    refusals = (("clip_qkv", 8.0, "must be null"), ("use_sliding_window", True, "must be false"))


def test_names_of_llama_are_read(tmp_path):
    """As transformers 5 holds the tensors in memory; it writes the published names."""
    config = TestExaone.configured()
    reference = build(hf.LlamaForCausalLM, config, 1)
    reference.save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    assert "transformer.h.0.attn.attention.out_proj.weight" in load_file(file)
    spec = import_spec(tmp_path)
    published = load(spec, tmp_path)
    save_file({name: tensor.contiguous() for name, tensor in reference.state_dict().items()}, file)
    held = load(spec, tmp_path)
    for name, parameter in published.named_parameters():
        assert torch.equal(held.get_parameter(name), parameter), name


@pytest.mark.parametrize("class_name", ["ExaoneForCausalLM", "LlamaForCausalLM"])
def test_either_class_is_read(class_name, tmp_path):
    config = TestExaone.configured()
    config.architectures = [class_name]
    config.save_pretrained(tmp_path)
    assert import_spec(tmp_path).head.kind == "language_modeling"
