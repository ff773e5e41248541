"""Every figure of the studio is that of the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.app import app
from cli.studio.answer import Answers, Question
from specs.files.device import device_names
from specs.language.catalog import preset_names
from specs.language.load import load
from tests.cli.studio.conftest import Page, text_of
from zoo.drawing import draw_svg


def command(*arguments: str) -> Any:
    result = CliRunner().invoke(app, [*arguments, "--json"], prog_name="zoo")
    return json.loads(result.stdout)


def answer(answers: Answers, text: str, base: str, **sizes: Any) -> dict[str, Any]:
    question = Question(
        text, base, "", sizes.get("batch", 1), sizes.get("length"), sizes.get("precision", "fp16")
    )
    return dict(answers.parts(question))


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    return Answers(tmp_path_factory.mktemp("studio"))


def check_equal(answers: Answers, name: str) -> None:
    """Compare the figures of a preset with those that params, report, diff and draw print."""
    figures = answer(answers, text_of(name), name)
    assert "fault" not in figures, figures["fault"]
    counted = command("params", name)
    assert figures["counts"]["parameters"] == counted["total_parameters"]
    assert figures["counts"]["active"] == counted["active_parameters"]
    assert figures["counts"]["embedding"] == counted["embedding_parameters"]
    devices = [option for device in device_names() for option in ("--device", device)]
    report = command("report", name, *devices)
    costs = figures["costs"]
    assert costs["roles"] == report["parameters"]["roles"]
    for stage, shown in costs["stages"].items():
        told = report["stages"][stage]["at"]
        shown = {**shown, **figures["devices"]["stages"][stage]}
        assert {key: shown[key] for key in told} == told
    assert figures["devices"]["weights"] == report["memory"]["weights"]
    if costs["cache"] is not None:
        kept = report["memory"]["cache"]
        assert (costs["cache"]["at"], costs["cache"]["held"]) == (kept["bytes"], kept["held_bytes"])
        assert costs["cache"]["bytes_per_token"] == kept["bytes_per_token"]
    trained = report["training"]
    assert figures["training"]["state"] == trained["state"]
    assert figures["training"]["matmul"] == trained["at"]["matmul"]
    assert figures["training"]["activations"] == trained["at"]["activations"]
    assert figures["training"]["checkpointed"] == trained["at"]["activations_checkpointed"]
    for shown, told in zip(figures["devices"]["roofline"], report["devices"], strict=True):
        assert (shown["name"], shown["count"], shown["roofs"]) == (
            told["device"]["name"],
            told["count"],
            told["roofs"],
        )
    row = next(row for row in figures["devices"]["fits"] if row["precision"] == "fp16")
    for shown, told in zip(row["devices"], report["devices"], strict=True):
        assert shown["batch"] == told["largest_batch"]
    assert figures["drawing"] == draw_svg(load(name))


def test_figures_equal_those_of_the_commands(answers: Answers) -> None:
    check_equal(answers, "tiny-gpt")


@pytest.mark.slow
@pytest.mark.parametrize("name", preset_names())
def test_figures_equal_those_of_the_commands_for_every_preset(answers: Answers, name: str) -> None:
    check_equal(answers, name)


def test_a_difference_equals_that_of_the_command(answers: Answers) -> None:
    text = (
        text_of("gpt2")
        .replace("kind: learned", "kind: rope")
        .replace("kind: layer_norm, eps: 1.0e-05", "kind: rms_norm")
    )
    figures = answer(answers, text, "gpt2", batch=2, length=256)
    told = command(
        "diff", "gpt2", "--set", "position.kind=rope", "--set", "decoder.block.norm.kind=rms_norm", "--batch", "2", "--length", "256"
    )  # fmt: skip
    assert figures["comparison"]["quantities"] == told["costs"]
    assert [change["where"] for change in figures["comparison"]["changes"]] == [
        change["path"] for change in told["spec"]
    ]
    changes = {change["where"]: (change["a"], change["b"]) for change in figures["comparison"]["changes"]}
    assert changes["position"] == ("learned", "rope")


def test_sizes_and_precision_are_those_of_the_question(answers: Answers) -> None:
    figures = answer(answers, text_of("gpt2"), "gpt2", batch=4, length=512, precision="int4")
    told = command(
        "report", "gpt2", "--batch", "4", "--length", "512", "--precision", "int4", "--device", "l4"
    )
    assert figures["devices"]["stages"]["prefill"]["bytes"] == told["stages"]["prefill"]["at"]["bytes"]
    l4 = next(device for device in figures["devices"]["roofline"] if device["name"] == "l4")
    assert l4["roofs"] == told["devices"][0]["roofs"]


def test_a_length_beyond_the_context_is_cut_and_said(answers: Answers) -> None:
    figures = answer(answers, text_of("gpt2"), "gpt2", length=9000)
    assert figures["costs"]["clamped"]
    assert figures["costs"]["sizes"]["length"] == 1024


def test_the_nearest_model_of_a_preset_is_itself_and_then_its_kin(answers: Answers) -> None:
    near = answer(answers, text_of("llama-3-8b"), "llama-3-8b")["nearest"]
    assert near[0]["name"] == "llama-3-8b"
    assert near[0]["likeness"] == 1.0
    assert near[0]["changes"] == []
    changed = answer(answers, text_of("gpt2").replace("kind: learned", "kind: rope"), "gpt2")["nearest"]
    assert changed[0]["likeness"] < 1
    assert changed[0]["changes"]


def test_a_wrong_spec_is_answered_by_its_problems_alone(page: Page) -> None:
    parts = page.answer(text_of("tiny-gpt").replace("d_model: 64", "d_modl: 64"), base="tiny-gpt")
    assert list(parts) == ["problems"]
    problem = parts["problems"][0]
    assert (problem["where"], problem["line"], problem["column"]) == ("d_modl", 4, 1)
    assert problem["fixes"][0]["label"] == "Rename to d_model"
    fixed = page.answer(problem["fixes"][0]["text"], base="tiny-gpt")
    assert fixed["counts"]["parameters"] == 223_616


def test_an_answer_that_is_overtaken_ends(answers: Answers) -> None:
    question = Question(text_of("tiny-gpt"), "tiny-gpt", "", 1, None, "fp16")
    parts = [name for name, _ in answers.parts(question, lambda: False)]
    assert parts == ["spec"]


def test_a_base_may_be_a_text_and_a_wrong_base_is_no_fault(answers: Answers) -> None:
    text = text_of("tiny-gpt")
    changed = text.replace("layers: 4", "layers: 2")
    for base, difference in ((text, True), ("name: [", False)):
        parts = dict(answers.parts(Question(changed, "", base, 1, None, "fp16")))
        assert bool(parts["comparison"]["changes"]) is difference
        assert "fault" not in parts


def test_expected_counts_of_the_text_are_compared(answers: Answers) -> None:
    text = f"{text_of('tiny-gpt')}expect: {{parameters: 5}}\n"
    expected = answer(answers, text, "tiny-gpt")["counts"]["expected"]
    assert expected == [{"path": "", "active": False, "published": 5, "built": 223_616, "met": False}]


def test_a_spec_may_extend_presets_and_files_below_the_folder_alone(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("extends: tiny-gpt\nname: base\ndecoder: {layers: 2}\n")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "own.yaml").write_text("extends: tiny-gpt\nname: own\n")
    answers = Answers(inside)
    assert "counts" in answer(answers, "extends: tiny-gpt\nname: a\n", "tiny-gpt")
    assert "counts" in answer(answers, "extends: own.yaml\nname: a\n", "tiny-gpt")
    for outside in ("../base.yaml", str(tmp_path / "base.yaml"), "/etc/passwd", "../../etc/passwd"):
        parts = answer(answers, f"extends: {outside}\nname: a\n", "tiny-gpt")
        assert list(parts) == ["problems"]
        assert "root:" not in json.dumps(parts)
