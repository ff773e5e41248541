"""The public Python API."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import torch
from onnxruntime import InferenceSession

import zoo
from specs.forms.resolved import resolved
from specs.language.writing import dump
from tests.zoo.tiny import bert, gpt2
from zoo.models.decoder import Decoder


def spec_file(directory: Path) -> Path:
    path = directory / "tiny.yaml"
    path.write_text(dump(resolved(gpt2())))
    return path


@pytest.mark.slow
def test_a_spec_is_a_preset_a_path_or_the_spec_itself(tmp_path: Path) -> None:
    path = spec_file(tmp_path)
    for given in (path, str(path), zoo.load(path)):
        assert zoo.parameters(given).total_parameters == zoo.parameters(gpt2()).total_parameters
        assert zoo.report(given).costs.stages
        assert isinstance(zoo.build(given), Decoder)
        assert zoo.draw(given)._repr_svg_().startswith("<svg")
        assert zoo.diff(given, path).as_dict()["same"]
    assert zoo.parameters("gpt2").total_parameters == 124_439_808


def test_checks_take_a_spec_and_weights() -> None:
    assert zoo.check(gpt2(), "random").passed
    with pytest.raises(zoo.WeightError, match="'nowhere' has no weights"):
        zoo.check(gpt2(), "nowhere")


def test_a_difference_is_reported() -> None:
    found = zoo.diff(gpt2(), gpt2(d_model=16)).as_dict()
    assert not found["same"]
    assert [each["path"] for each in found["spec"]][:1] == ["d_model"]


@pytest.mark.parametrize("ending", [".svg", ".md", ".mmd"])
def test_a_picture_is_saved_as_its_name_says(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"tiny{ending}"
    zoo.draw(gpt2()).save(path)
    assert path.read_text().startswith(
        {".svg": "<svg", ".md": "```mermaid\n---", ".mmd": "---\ntitle"}[ending]
    )


def test_a_picture_with_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(zoo.UserError, match=r"tiny.jpg has no known picture extension\n  Use .svg"):
        zoo.draw(gpt2()).save(tmp_path / "tiny.jpg")
    assert not list(tmp_path.iterdir())


def test_a_module_in_hand_is_exported_with_the_weights_that_it_holds(tmp_path: Path) -> None:
    model = zoo.build(gpt2(), weights="random").train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    ids = torch.arange(6)[None]
    model(ids).logits.square().mean().backward()
    optimizer.step()
    model.eval()
    written = zoo.export(model, tmp_path / "out", target="cpu")
    assert written.verification is not None
    assert written.verification.passed
    assert (written.manifest.weights, written.build.weights_from) == ("checkpoint", "a module in memory")
    session = InferenceSession(tmp_path / "out" / "model.onnx")
    given = {"input_ids": ids.numpy(), "attention_mask": np.ones((1, 6), np.int64)}
    empty = {
        each.name: np.zeros([1, 2, 0, 4], np.float32) for each in session.get_inputs() if "past" in each.name
    }
    (logits, *_) = session.run(
        ["logits"], {name: given.get(name, empty.get(name)) for name in [*given, *empty]}
    )
    with torch.no_grad():
        np.testing.assert_allclose(logits, model(ids).logits.numpy(), rtol=1e-4, atol=1e-5)


def test_a_module_in_few_bits_is_judged_on_what_it_writes_itself(tmp_path: Path) -> None:
    written = zoo.export(
        zoo.build(gpt2(), weights="random"), tmp_path / "out", target="cpu", precision="int8"
    )
    assert written.quality is not None
    assert written.quality.passed


def test_a_module_that_is_exported_has_weights(tmp_path: Path) -> None:
    with pytest.raises(
        zoo.UserError, match="This module has no weights\n  Build it with weights, or export its spec"
    ):
        zoo.export(zoo.build(bert()), tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_spec_is_exported(tmp_path: Path) -> None:
    written = zoo.export(spec_file(tmp_path), tmp_path / "out", weights="random", seed=3)
    assert written.manifest.seed == 3


def test_types_and_errors_are_found_in_one_place() -> None:
    assert zoo.__version__ == version("zoo")
    for name in zoo.__all__:
        assert getattr(zoo, name) is not None
    assert dir(zoo) == sorted([*zoo.__all__, "__version__"])
    assert issubclass(zoo.VerificationError, zoo.UserError)
    with pytest.raises(AttributeError, match="module 'zoo' has no attribute 'biuld'"):
        zoo.biuld  # type: ignore[attr-defined]  # noqa: B018


def test_importing_it_loads_neither_torch_nor_the_exporters() -> None:
    code = "import sys, zoo; assert not {'torch', 'exporters', 'pydantic'} & set(sys.modules), sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_command_line_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "zoo", "--version"], capture_output=True, text=True, check=True
    )
    assert version("zoo") in done.stdout
