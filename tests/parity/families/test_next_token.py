"""Modules of multi-token prediction against their formula (DeepSeek-V3: DeepSeek-AI, 2024, equations 21 to 23), with the layers of
transformers, which drops their tensors."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from specs.model.model import Model
from tests.parity.families.decoders import test_deepseek as deepseek
from tests.parity.families.decoders import test_glm4_moe as glm
from tests.parity.families.decoders import test_glm4_moe_lite as lite
from tests.parity.families.hybrids import test_qwen3_next as qwen
from tests.parity.reference import assert_close, build, load, ragged, redraw
from zoo.checkpoints.converting import convert
from zoo.configs.exporting import write_config
from zoo.configs.importing import import_spec
from zoo.families.common.config_errors import ConfigError


@dataclass
class Module:
    """The module of a family: its class in vLLM, the tests of the family, the ``prefix`` of its layer's tensors, and the names of the
    token norm, hidden norm, projection and final norm. ``one`` are the fields of its layer; ``#`` stands for the number of layers."""

    name: str
    tests: Any
    prefix: str
    own: tuple[str, ...]
    one: Mapping[str, Any]


_QWEN = "mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden", "mtp.fc", "mtp.norm"
_LAYER = "model.layers.#."
_NEXTN = tuple(f"{_LAYER}{name}" for name in ("enorm", "hnorm", "eh_proj", "shared_head.norm"))
_ATTENTION = {"num_hidden_layers": 1, "layer_types": [qwen.FULL]}
MODULES = [
    Module("Qwen3NextMTP", qwen.TestQwen3Next, "mtp.layers.0.", _QWEN, {**_ATTENTION, "mlp_only_layers": []}),
    Module("Qwen3_5MTP", qwen.TestQwen35, "mtp.layers.0.", _QWEN, _ATTENTION),
    Module("Qwen3_5MoeMTP", qwen.TestQwen35Moe, "mtp.layers.0.", _QWEN, _ATTENTION),
    Module("DeepSeekMTPModel", deepseek.TestDeepseekV3, _LAYER, _NEXTN, {"num_hidden_layers": 1, "first_k_dense_replace": 0}),
    Module("Glm4MoeLiteMTPModel", lite.TestGlm4MoeLite, _LAYER, _NEXTN, {"num_hidden_layers": 1, "mlp_layer_types": ["sparse"]}),
    Module("Glm4MoeMTPModel", glm.TestGlm4Moe, _LAYER, _NEXTN, {"num_hidden_layers": 1, "first_k_dense_replace": 0}),
]  # fmt: skip


class Reference(nn.Module):
    """A model with its module, whose layer and final norm are those of a model of ``one`` layer; the modules of GLM have tables of
    their own."""

    def __init__(self, module: Module, seed: int) -> None:
        super().__init__()
        config = module.tests.configured()
        self.main = build(module.tests.model_class, config, seed)
        alone = copy.deepcopy(config)
        alone.update(module.one)
        self.one = build(module.tests.model_class, alone, seed + 1)
        width = config.hidden_size
        norm = type(self.one.model.norm)
        self.norm, self.hidden_norm = norm(width, config.rms_norm_eps), norm(width, config.rms_norm_eps)
        self.projection = nn.Linear(2 * width, width, bias=False)
        self.table, self.head = self.main.get_input_embeddings(), self.main.lm_head
        self.shared = not module.name.startswith("Glm4Moe")
        if not self.shared:
            self.table, self.head = copy.deepcopy(self.table), copy.deepcopy(self.head)
        drawn = (self.norm, self.hidden_norm, self.projection)
        for part in drawn if self.shared else (*drawn, self.table, self.head):
            redraw(part, seed + 2)

    def hidden(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """The hidden states of the model after its final norm, B T D."""
        return self.main.model(ids, attention_mask=mask).last_hidden_state

    @torch.no_grad()
    def scores(self, ids: Tensor, hidden: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The scores of the token after each token, B T V, from the hidden states of the tokens before, and the next hidden states."""
        both = self.norm(self.table(ids)), self.hidden_norm(hidden)
        x = self.projection(torch.cat(both, -1))  # equation 21
        x = self.one.model(inputs_embeds=x, attention_mask=mask).last_hidden_state  # equation 22
        return self.head(x), x  # equation 23

    def named(self, name: str) -> str:
        """A name with the number of the model's layers."""
        return name.replace("#", str(self.main.config.num_hidden_layers))

    def save(self, directory: Path, module: Module) -> None:
        """Write a checkpoint as it is published: the model's, with the tensors of the module."""
        self.one.save_pretrained(directory / "one")
        self.main.save_pretrained(directory)
        stored = load_file(directory / "one" / "model.safetensors")
        layer = {
            self.named(module.prefix) + name.removeprefix("model.layers.0."): tensor
            for name, tensor in stored.items()
            if name.startswith("model.layers.0.")
        }
        parts = (self.norm, self.hidden_norm, self.projection, self.one.model.norm)
        own = {
            f"{self.named(name)}.weight": part.weight.data
            for name, part in zip(module.own, parts, strict=True)
        }
        if not self.shared:
            own[self.named(f"{module.prefix}embed_tokens.weight")] = self.table.weight.data
            own[self.named(f"{module.prefix}shared_head.head.weight")] = self.head.weight.data
        file = directory / "model.safetensors"
        save_file({**load_file(file), **layer, **own}, file, {"format": "pt"})


def made(module: Module, directory: Path, seed: int = 3) -> tuple[Reference, Model]:
    """A reference and the spec of the module in its checkpoint."""
    reference = Reference(module, seed)
    reference.save(directory, module)
    return reference, import_spec(directory, family=module.name, name="module")


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_the_formula(module: Module, tmp_path: Path) -> None:
    reference, spec = made(module, tmp_path)
    model = load(spec, tmp_path)
    ids, mask = ragged(3, 12, spec.vocab_size or 0, "left", 4)
    hidden = reference.hidden(ids, mask)[:, :-1].detach()
    expected, following = reference.scores(ids[:, 1:], hidden, mask[:, 1:])
    outputs = model(ids[:, 1:], mask[:, 1:], hidden_states=hidden)
    assert_close(outputs.logits, expected, mask[:, 1:])
    again = model(ids[:, 1:], mask[:, 1:], hidden_states=following).logits
    assert_close(again, reference.scores(ids[:, 1:], following, mask[:, 1:])[0], mask[:, 1:])


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_is_written_as_it_was_read(module: Module, tmp_path: Path) -> None:
    reference, spec = made(module, tmp_path)
    config = write_config(spec, reference.main.config.model_type)
    assert config["architectures"] == [module.name]
    convert(spec, str(tmp_path), tmp_path / "written")
    assert import_spec(tmp_path / "written", name="module", strict=True) == spec
    first, second = (load(spec, path) for path in (tmp_path, tmp_path / "written"))
    for name, tensor in first.state_dict().items():
        assert torch.equal(tensor, second.state_dict()[name]), name
    written = load_file(tmp_path / "written" / "model.safetensors")
    stored = load_file(tmp_path / "model.safetensors")
    layer, alone = reference.named(module.prefix), module.prefix.replace("#", "0")
    own = (layer, *map(reference.named, module.own))
    wanted = {name.replace(layer, alone): tensor for name, tensor in stored.items() if name.startswith(own)}
    for copied, shared in (("embed_tokens", "model.embed_tokens"), ("shared_head.head", "lm_head")):
        held = f"{alone}{copied}.weight" if "#" in module.prefix else f"{shared}.weight"
        if f"{shared}.weight" in stored:  # not tied
            wanted.setdefault(held, stored[f"{shared}.weight"])
    assert written.keys() == wanted.keys()
    assert all(torch.equal(tensor, wanted[name]) for name, tensor in written.items())


def test_a_checkpoint_with_images_has_the_text_model_and_its_module(tmp_path: Path) -> None:
    """As Qwen3.5 is published: ``Qwen3_5ForConditionalGeneration``, with the module beside all of it."""
    _, spec = made(MODULES[1], tmp_path / "text")
    text = json.loads((tmp_path / "text" / "config.json").read_text())
    outer = {
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "model_type": "qwen3_5",
        "vision_config": {},
    }
    config = {**outer, "text_config": text, "tie_word_embeddings": text["tie_word_embeddings"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    stored = load_file(tmp_path / "text" / "model.safetensors")
    named = {name.replace("model.", "model.language_model.", 1): tensor for name, tensor in stored.items()}
    named["model.visual.pos_embed.weight"] = torch.zeros(4, 4)
    save_file(named, tmp_path / "model.safetensors", {"format": "pt"})
    module = import_spec(tmp_path, family="Qwen3_5MTP", name="module")
    assert module == spec
    first, second = load(spec, tmp_path / "text"), load(module, tmp_path)
    assert all(torch.equal(x, second.state_dict()[name]) for name, x in first.state_dict().items())
    ids, _ = ragged(2, 9, 61, "left", 1)
    alone, beside = (
        load(import_spec(path, family=family), path)
        for path, family in ((tmp_path / "text", None), (tmp_path, "qwen3_5_text"))
    )
    assert torch.equal(alone(ids).logits, beside(ids).logits)


def test_only_a_family_with_the_module_has_its_class(tmp_path: Path) -> None:
    config = copy.deepcopy(MODULES[3].tests.configured().to_dict())
    path = tmp_path / "config.json"
    path.write_text(
        json.dumps({**config, "architectures": ["DeepseekV3ForCausalLM"], "num_nextn_predict_layers": 2})
    )
    with pytest.raises(ConfigError, match="num_nextn_predict_layers: must be 1: a spec has one module"):
        import_spec(path, family="DeepSeekMTPModel")
    with pytest.raises(ConfigError, match="'Qwen3NextMTP' is not a supported family"):
        import_spec(path, family="Qwen3NextMTP")
