"""Specs with every short form written out: they say the same, and leave nothing to defaults."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from specs.forms.canonical import complete
from specs.forms.difference import differences
from specs.forms.written_out import written_out
from specs.language.load import load
from specs.language.preset_files import preset_names
from specs.language.writing import dump
from specs.model.model import Model
from specs.model.stack_graph import StackGraph
from tests.cli.program import done
from tests.strategies import Data, model_data

relaxed = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def check(spec: Model) -> None:
    """What is written out reads back as an equal model, and is written out alike again."""
    data = written_out(spec)
    again = Model.model_validate(data)
    assert complete(again) == complete(spec)
    assert (again.name, again.summary, again.source, again.year) == (
        spec.name,
        spec.summary,
        spec.source,
        spec.year,
    )
    assert again.expect == spec.expect
    assert written_out(again) == data


@pytest.mark.slow
def test_every_preset_says_the_same() -> None:
    for name in preset_names():
        check(load(name))


@pytest.mark.slow
@relaxed
@given(model_data())
def test_every_variant_says_the_same(data: Data) -> None:
    check(Model.model_validate(data))


@pytest.mark.parametrize(
    "name",
    [
        "gpt2",
        "gemma3-1b",
        "modernbert-base",
        "t5-small",
        "clip-vit-b32",
        "whisper-tiny",
        "llava-1.5-7b",
        "colmodernvbert",
        "eomt-large-coco-panoptic-640",
    ],
)
def test_the_command_writes_a_spec(name: str, tmp_path: Path) -> None:
    """As YAML, named blocks included, which change a block of which every value is stated."""
    result = done("show", name, "--canonical")
    comments = "".join(f"# {line}\n" for line in str(StackGraph.of(load(name))).splitlines())
    assert result == comments + dump(written_out(load(name)))
    (tmp_path / "written.yaml").write_text(result, encoding="utf-8")
    assert differences(load(tmp_path / "written.yaml"), load(name)) == []


def test_short_forms_are_written_out() -> None:
    data = written_out(load("gemma3-1b"))
    assert not {"position", "embedding", "context_length"} & set(data)
    stack = data["decoder"]
    assert (stack["d_model"], stack["context_length"], stack["causal"]) == (1152, 32768, True)
    assert (stack["position"]["kind"], stack["embedding"]["width"]) == ("rope", 1152)
    assert sum(run["repeat"] for run in stack["layers"]) == 26
    assert [run["use"] for run in stack["layers"][:3]] == ["local", None, "local"]
    attention = stack["blocks"]["local"]["attention"]
    assert (attention["window"], attention["head_dim"], attention["scale"]) == (512, 256, 0.0625)
    assert stack["blocks"]["local"]["feed_forward_norm"] == stack["block"]["norm"]
    cross = written_out(load("t5-small"))["decoder"]["block"]["cross_attention"]
    assert (cross["heads"], cross["window"], cross["position"]) == (8, None, None)
    parallel = written_out(load("gpt-j-6b"))["decoder"]["block"]
    assert (parallel["norms"], parallel["attention_norm"]) == ("shared", None)
