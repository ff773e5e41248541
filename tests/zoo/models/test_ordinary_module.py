"""A built model is an ordinary module: what PyTorch and its neighbours do with modules works with it."""

from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

import zoo
from specs.model.model import Model
from zoo.builder import ZooModel
from zoo.core.reduced import fewer_layers, narrowed, small_tables

QUICK = "rope"
PRESETS = {
    "learned": ("gpt2", 12),
    "rope": ("smollm2-135m", 3),
    "rope by length": ("phi-3.5-mini", 8),
    "alibi": ("bloom-560m", 16),
    "latent": ("deepseek-v2-lite", 16),
    "mixture": ("mixtral-8x7b", 16),
    "encoder": ("bert-tiny", 2),
    "relative bias": ("t5-small", 8),
    "sound": ("whisper-tiny", 6),
    "positions of layers": ("gemma3-1b", 4),
}


@pytest.fixture(
    params=[
        pytest.param(given, id=name, marks=() if name == QUICK else pytest.mark.slow)
        for name, given in PRESETS.items()
    ],
    scope="module",
)
def spec(request: pytest.FixtureRequest) -> Model:
    name, divisor = request.param
    described = fewer_layers(zoo.load(name))
    small = small_tables(narrowed(described, divisor))
    return small.model_copy(update={"vocab_size": 200})


@pytest.fixture(scope="module")
def model(spec: Model) -> ZooModel:
    return zoo.build(spec, weights="random")


def inputs(spec: Model) -> dict[str, Tensor]:
    torch.manual_seed(0)
    assert spec.vocab_size is not None
    ids = torch.randint(0, spec.vocab_size, (2, 7))
    if spec.architecture == "decoder":
        return {"input_ids": ids}
    if spec.architecture == "encoder":
        return {"inputs": ids}
    assert spec.encoder is not None
    embedding = spec.embedding_of(spec.encoder)
    frames = 2 * (spec.context_length_of(spec.encoder) or 0)
    first = ids if embedding.takes_tokens else torch.randn(2, embedding.mel_bins, frames)  # type: ignore[attr-defined]
    return {"inputs": first, "decoder_input_ids": ids[:, :5]}


def outputs(model: Any, spec: Model) -> dict[str, Tensor]:
    with torch.no_grad():
        return dict(model(**inputs(spec)))


def assert_same(model: Any, other: Any, spec: Model) -> None:
    torch.testing.assert_close(outputs(other, spec), outputs(model, spec), rtol=0, atol=0)


def test_it_is_pickled(model: ZooModel, spec: Model) -> None:
    assert_same(model, pickle.loads(pickle.dumps(model)), spec)


def test_it_is_copied(model: ZooModel, spec: Model) -> None:
    other = copy.deepcopy(model)
    assert_same(model, other, spec)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    assert any(bool(parameter.any()) for parameter in model.parameters())


def test_torch_saves_it(model: ZooModel, spec: Model) -> None:
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    assert_same(model, torch.load(file, weights_only=False), spec)


@pytest.mark.slow
def test_torch_exports_it(model: ZooModel, spec: Model) -> None:
    program = torch.export.export(model, (), inputs(spec))
    torch.testing.assert_close(dict(program.module()(**inputs(spec))), outputs(model, spec))


@pytest.mark.slow
def test_torch_compiles_it_without_a_break(model: ZooModel, spec: Model) -> None:
    torch.compiler.reset()  # which counts the models compiled before against a limit
    compiled = torch.compile(zoo.build(spec, weights="random"), fullgraph=True, backend="eager")
    assert_same(model, compiled, spec)


def test_its_state_holds_a_tied_weight_once(model: ZooModel, spec: Model) -> None:
    state = model.state_dict()
    assert len({value.data_ptr() for value in state.values()}) == len(state)
    other = zoo.build(spec, weights="random", seed=1)
    other.load_state_dict(state)
    assert_same(model, other, spec)


def test_a_state_with_all_names_is_taken() -> None:
    spec = narrowed(fewer_layers(zoo.load("smollm2-135m")), 3)
    model, other = (zoo.build(spec, weights="random", seed=seed) for seed in (0, 1))
    state = {name: value.detach() for name, value in model.named_parameters(remove_duplicate=False)}
    assert len(state) == len(model.state_dict()) + 1
    other.load_state_dict(state)
    assert_same(model, other, spec)


def test_a_missing_weight_is_reported() -> None:
    spec = narrowed(fewer_layers(zoo.load("smollm2-135m")), 3)
    model = zoo.build(spec, weights="random")
    state = model.state_dict()
    del state["embedding.token.weight"]
    with pytest.raises(RuntimeError, match=r"Missing key\(s\) in state_dict: \"embedding.token.weight\""):
        model.load_state_dict(state)


class Halved(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return weight / 2


def test_a_weight_is_parametrized(model: ZooModel, spec: Model) -> None:
    changed, expected = copy.deepcopy(model), copy.deepcopy(model)
    name = next(name for name, module in model.named_modules() if isinstance(module, nn.Linear))
    torch.nn.utils.parametrize.register_parametrization(changed.get_submodule(name), "weight", Halved())
    with torch.no_grad():
        expected.get_parameter(f"{name}.weight").div_(2)
    assert_same(expected, changed, spec)


def language_model() -> tuple[Model, ZooModel]:
    spec = narrowed(fewer_layers(zoo.load("smollm2-135m")), 3).model_copy(update={"vocab_size": 40})
    return spec, zoo.build(spec, weights="random")


@pytest.mark.slow
def test_adapters_of_peft_train_and_merge() -> None:
    import peft

    spec, model = language_model()
    before = outputs(model, spec)
    config = peft.LoraConfig(target_modules=["query", "value"], r=2, init_lora_weights=False)
    adapted: Any = peft.get_peft_model(copy.deepcopy(model), config)
    trained = [name for name, parameter in adapted.named_parameters() if parameter.requires_grad]
    assert len(trained) == 2 * 2 * len(model.decoder.blocks)  # type: ignore[arg-type]
    adapted(**inputs(spec))["logits"].sum().backward()
    assert all(parameter.grad is not None for parameter in adapted.parameters() if parameter.requires_grad)
    changed = outputs(adapted, spec)
    assert not torch.allclose(changed["logits"], before["logits"])
    torch.testing.assert_close(outputs(adapted.merge_and_unload(), spec), changed)


@pytest.mark.slow
def test_the_trainer_of_transformers_trains_and_saves_it(tmp_path: Path) -> None:
    import transformers

    spec, model = language_model()
    ids = torch.arange(12).repeat(8, 1)

    def loss(outputs: dict[str, Tensor], labels: Tensor, num_items_in_batch: object = None) -> Tensor:
        return F.cross_entropy(outputs["logits"][:, :-1].flatten(0, 1), labels[:, 1:].flatten())

    with torch.no_grad():
        before = float(loss(model(input_ids=ids), ids))
    arguments = transformers.TrainingArguments(
        str(tmp_path / "run"), num_train_epochs=4, learning_rate=1e-2, report_to=[], use_cpu=True,
        per_device_train_batch_size=4, disable_tqdm=True, save_strategy="no", logging_strategy="no",
        label_names=["labels"],
    )  # fmt: skip
    rows = [{"input_ids": row, "labels": row} for row in ids]
    trainer = transformers.Trainer(model, arguments, train_dataset=rows, compute_loss_func=loss)
    trainer.train()
    with torch.no_grad():
        assert float(loss(model(input_ids=ids), ids)) < before / 2
    trainer.save_model(str(tmp_path / "saved"))
    file = tmp_path / "saved" / "model.safetensors"
    assert set(load_file(file)) == set(dict(model.named_parameters()))
    assert_same(model.eval(), zoo.build(spec, weights=str(file)), spec)
