"""Types that no family reads: what is missing is named, or the family whose fields and tensors they have is offered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
from transformers.models.pixtral import PixtralVisionConfig

from specs.base.errors import UserError
from tests.parity.reference import build, load
from tests.zoo.configs.default_configs import NO_DEFAULT, OUTCOMES, outcome_of
from zoo.configs.importing import import_spec, spec_of_config
from zoo.configs.named_model import named_model
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError
from zoo.families.common.inexpressible import INEXPRESSIBLE
from zoo.weights.source import WeightError

SHAPE = dict(
    vocab_size=61, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
    intermediate_size=48, max_position_embeddings=64, bos_token_id=0, eos_token_id=0, pad_token_id=0,
)  # fmt: skip
RENAMED = {"model_type": "mimo", "architectures": ["MiMoForCausalLM"]}


def _stated(tmp_path: Path, model: hf.PreTrainedModel, **changes: Any) -> Path:
    """A checkpoint whose config states other values; None removes a field."""
    model.save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    data = {**json.loads(file.read_text("utf-8")), **changes}
    file.write_text(json.dumps({name: value for name, value in data.items() if value is not None}))
    return tmp_path


def _llama() -> Any:
    return build(hf.LlamaForCausalLM, hf.LlamaConfig(**SHAPE), 1)


def _qwen2() -> Any:
    return build(hf.Qwen2ForCausalLM, hf.Qwen2Config(**SHAPE), 1)


def _gpt2() -> Any:
    shape = dict(vocab_size=61, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0)
    return build(hf.GPT2LMHeadModel, hf.GPT2Config(**shape), 1)


def _mistral3() -> Any:
    vision = dict(
        hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=28, patch_size=14
    )  # fmt: skip
    text = hf.Ministral3Config(**SHAPE, head_dim=8)
    config = hf.Mistral3Config(
        text_config=text, vision_config=PixtralVisionConfig(**vision), image_token_index=10
    )
    return build(hf.Mistral3ForConditionalGeneration, config, 1)


@pytest.mark.parametrize(
    ("model", "changes", "family"),
    [
        (_llama, RENAMED, "llama"),
        (_qwen2, {**RENAMED, "num_nextn_predict_layers": 1}, "qwen2"),
        (_gpt2, {"model_type": None, "architectures": None}, "gpt2"),
        (_mistral3, {}, "ministral3"),
    ],
    ids=["llama", "qwen2", "gpt2", "text model"],
)
def test_the_family_is_offered_and_read(
    model: Any, changes: dict[str, Any], family: str, tmp_path: Path
) -> None:
    reference = model()
    path = _stated(tmp_path, reference, **changes)
    with pytest.raises(ConfigError, match=rf"tensors are those of {family}\. Pass family {family} to export"):
        import_spec(path)
    named = named_model(str(path), family=family)
    ids = torch.tensor([[3, 9, 27, 5, 14, 2, 60]])
    with torch.no_grad():
        ours = load(named.spec, path)(ids)["logits"]
        if family == "ministral3":
            theirs = reference.lm_head(reference.model.language_model(ids).last_hidden_state)
        else:
            theirs = reference(ids).logits
    assert torch.allclose(ours, theirs, atol=1e-5)
    assert named.passed_over == tuple(name for name in changes if name == "num_nextn_predict_layers")


def test_tensors_of_another_family_are_not_read(tmp_path: Path) -> None:
    """Queries with biases are not Llama's."""
    path = _stated(tmp_path, _qwen2(), **RENAMED, layer_types=None)
    spec = import_spec(path, family="llama")
    with pytest.raises(WeightError, match=r"does not fit the spec.*unused"):
        load(spec, path)


def test_a_supported_type_is_read_as_itself(tmp_path: Path) -> None:
    path = _stated(tmp_path, _llama())
    with pytest.raises(ConfigError, match="is a supported family, and is not read as qwen2"):
        import_spec(path, family="qwen2")


def test_a_type_with_a_missing_part_stays_refused(tmp_path: Path) -> None:
    path = _stated(tmp_path, _llama(), model_type="diffllama")
    with pytest.raises(ConfigError, match="the difference of two softmaxes"):
        import_spec(path, family="llama")


def test_a_family_is_for_checkpoints() -> None:
    with pytest.raises(UserError, match="is for checkpoints, and gpt2 is a spec"):
        named_model("gpt2", family="llama")


def test_an_unknown_family_is_refused(tmp_path: Path) -> None:
    path = _stated(tmp_path, _llama(), **RENAMED)
    with pytest.raises(ConfigError, match="Did you mean 'llama'"):
        import_spec(path, family="lama")


def test_fields_alone_do_not_choose_between_families() -> None:
    """BERT, RoBERTa and others read the same fields in different ways."""
    data = {name: value for name, value in hf.RobertaConfig().to_dict().items() if name != "model_type"}
    with pytest.raises(ConfigError) as caught:
        spec_of_config(Config(data, "config.json"), name="x")
    assert "are those of bert. Pass" not in str(caught.value)


def test_a_config_of_another_program_is_not_taken_for_bert() -> None:
    data = {"n_layer": 6, "n_head": 8, "n_embd": 512, "dropout": 0.1}
    with pytest.raises(ConfigError, match="others are not read"):
        spec_of_config(Config(data, "config.json"), name="x")


@pytest.mark.parametrize("model_type", ["markuplm", "longformer", "sam", "squeezebert", "encodec"])
def test_the_missing_part_is_named_and_no_spelling_suggested(model_type: str) -> None:
    with pytest.raises(ConfigError) as caught:
        spec_of_config(Config({"model_type": model_type}, "config.json"), name="x")
    said = str(caught.value)
    assert f"specs cannot express {INEXPRESSIBLE[model_type]}" in said
    assert "Did you mean" not in said


@pytest.mark.slow
def test_default_configs_of_these_types_are_refused_for_it() -> None:
    for model_type in INEXPRESSIBLE.keys() & CONFIG_MAPPING_NAMES.keys():
        outcome, refusal = outcome_of(model_type)
        assert outcome in (OUTCOMES["specs cannot express"], NO_DEFAULT), (model_type, refusal)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ({"architectures": ["Exaone4ForCausalLM"]}, "The class of its text model is Exaone4ForCausalLM, of exaone4. Pass family exaone4 to export, build or import it as that family."),
        ({"architectures": ["NewForCausalLM"]}, "zoo has no family like its text model."),
        ({}, "zoo has no family like its text model."),
    ],
)  # fmt: skip
def test_an_unknown_text_model_is_told_from_its_class(text: dict[str, Any], remedy: str) -> None:
    inner = {"model_type": "new_text", "shape": 3, **text}
    with pytest.raises(ConfigError) as caught:
        spec_of_config(Config({"model_type": "new", "text_config": inner}, "config.json"), name="new")
    assert str(caught.value).endswith(remedy)
