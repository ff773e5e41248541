"""Every figure of the studio is that of the command line."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from cli.options.sizes import file_sizes
from cli.studio.answer import Answers, Question
from specs.files.device import device_names
from specs.language.load import load
from specs.language.preset_files import preset_names
from tests.cli.program import as_json, invoke
from tests.cli.studio.conftest import Page, text_of
from tests.exporters.reduced_presets import structures
from tests.thinned import one_in
from zoo.drawing import draw_svg
from zoo.reports.parameters import parameter_report
from zoo.reports.report import report


def answer(answers: Answers, text: str, base: str, **sizes: Any) -> dict[str, Any]:
    question = Question(
        text, base, "", sizes.get("batch", 1), sizes.get("length"), sizes.get("precision", "fp16")
    )
    return dict(answers.parts(question))


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    return Answers(tmp_path_factory.mktemp("studio"))


def check_equal(figures: dict[str, Any], counted: Any, report: Any, name: str) -> None:
    """Compare the figures of a preset with those of params, report, diff and draw."""
    assert "fault" not in figures, figures["fault"]
    assert figures["counts"]["parameters"] == counted["total_parameters"]
    assert figures["counts"]["active"] == counted["active_parameters"]
    assert figures["counts"]["embedding"] == counted["embedding_parameters"]
    costs = figures["costs"]
    assert costs["roles"] == report["parameters"]["roles"]
    assert costs["stages"].keys() == figures["devices"]["stages"].keys() == report["stages"].keys()
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


def printed(name: str) -> tuple[Any, Any]:
    """What ``zoo params`` and ``zoo report`` print for a preset."""
    devices = [option for device in device_names() for option in ("--device", device)]
    return as_json("params", name), as_json("report", name, *devices)


def reported(name: str) -> tuple[Any, Any]:
    """The same from the functions that these commands call."""
    spec = load(name)
    told = report(spec, devices=device_names(), weights=file_sizes(spec, "portable"))
    return json.loads(json.dumps([parameter_report(spec).as_dict(), told.as_dict()]))


@pytest.mark.slow
def test_figures_equal_those_of_the_commands(answers: Answers) -> None:
    check_equal(answer(answers, text_of("tiny-gpt"), "tiny-gpt"), *printed("tiny-gpt"), "tiny-gpt")


MODELS = list({re.match(r"[a-z]+[\d.]*", name)[0]: name for name in reversed(structures())}.values())[::6]  # type: ignore[index]
"""A preset of every sixth published model: those of different structures, by the word that their names begin with."""


@one_in(3)
@pytest.mark.parametrize("name", MODELS)
def test_figures_equal_those_of_reports(answers: Answers, name: str) -> None:
    check_equal(answer(answers, text_of(name), name), *reported(name), name)


@pytest.mark.slow
@pytest.mark.parametrize("name", preset_names())
def test_figures_equal_those_of_the_commands_for_every_preset(answers: Answers, name: str) -> None:
    check_equal(answer(answers, text_of(name), name), *printed(name), name)


def test_a_difference_equals_that_of_the_command(answers: Answers) -> None:
    text = (
        text_of("gpt2")
        .replace("kind: learned", "kind: rope")
        .replace("kind: layer_norm, eps: 1.0e-05", "kind: rms_norm")
    )
    figures = answer(answers, text, "gpt2", batch=2, length=256)
    sets = ["--set", "position.kind=rope", "--set", "decoder.block.norm.kind=rms_norm"]
    told = json.loads(invoke("diff", "gpt2", *sets, "--batch", "2", "--length", "256", "--json").stdout)
    assert figures["comparison"]["quantities"] == told["costs"]
    assert [change["where"] for change in figures["comparison"]["changes"]] == [
        change["path"] for change in told["spec"]
    ]
    changes = {change["where"]: (change["a"], change["b"]) for change in figures["comparison"]["changes"]}
    assert changes["position"] == ("learned", "rope")


def test_sizes_and_precision_are_those_of_the_question(answers: Answers) -> None:
    figures = answer(answers, text_of("gpt2"), "gpt2", batch=4, length=512, precision="int4")
    told = as_json(
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
    assert not list(answers.parts(question, lambda: False))


def many_kinds(count: int) -> str:
    """A spec whose layers are all of different kinds."""
    block = "kind: pre_norm, norm: {kind: rms_norm}, attention: {kind: multi_head, heads: 4}, feed_forward: {kind: mlp, activation: relu, hidden: %d}"
    blocks = "".join(f"    b{i}: {{{block % (100 + i)}}}\n" for i in range(count))
    layers = ", ".join(f"{{use: b{i}}}" for i in range(count))
    return (
        "name: many\narchitecture: decoder\nvocab_size: 1000\nd_model: 64\ncontext_length: 128\nposition: {kind: rope}\n"
        f"decoder:\n  block: {{{block % 64}}}\n  blocks:\n{blocks}  layers: [{layers}]\nhead: {{kind: language_modeling}}\n"
    )


@pytest.mark.parametrize(
    ("kinds", "parts", "fault"),
    [
        (17, ["spec", "counts", "drawing", "fault"], "shows costs of at most 16.\n  Use zoo report."),
        (101, ["spec", "fault"], "counts parameters of at most 100.\n  Use zoo params."),
    ],
)
def test_many_kinds_of_layers_are_left_to_the_commands(
    answers: Answers, kinds: int, parts: list[str], fault: str
) -> None:
    figures = answer(answers, many_kinds(kinds), "tiny-gpt")
    assert list(figures) == parts
    assert figures["fault"]["message"] == f"many has {kinds} kinds of layers; the page {fault}"


def test_more_than_ten_thousand_layers_are_refused(answers: Answers) -> None:
    refused = answer(answers, text_of("tiny-gpt").replace("layers: 4", "layers: 49408"), "tiny-gpt")
    assert refused["problems"][0]["message"] == "must be less than or equal to 10000"


@pytest.mark.slow
def test_ten_thousand_layers_are_answered(answers: Answers) -> None:
    began = time.process_time()
    deep = answer(answers, text_of("tiny-gpt").replace("layers: 4", "layers: 10000"), "tiny-gpt")
    assert (
        deep["counts"]["parameters"]
        == as_json("params", "tiny-gpt", "--set", "decoder.layers=10000")["total_parameters"]
    )
    assert "fault" not in deep
    assert time.process_time() - began < 10


def test_another_depth_is_answered_without_a_trace(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    shallow = answer(answers, text_of("tiny-gpt"), "tiny-gpt")
    monkeypatch.setattr("zoo.tracing.tracer.Tracer.run", lambda *_: pytest.fail("traced again"))
    deep = answer(answers, text_of("tiny-gpt").replace("layers: 4", "layers: 9"), "tiny-gpt")
    assert "fault" not in deep
    assert deep["training"]["activations"] > shallow["training"]["activations"]


def test_a_precision_without_a_name_is_refused(answers: Answers) -> None:
    figures = answer(answers, text_of("tiny-gpt"), "tiny-gpt", precision="int5")
    assert figures["fault"]["message"].startswith("tiny-gpt cannot be stored in int5.")


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
