"""Failures are the last lines of a command, each with its remedy."""

import pytest

from tests.cli.program import invoke
from zoo import functional
from zoo.checks import shapes

pytestmark = pytest.mark.usefixtures("empty_directory")


def test_a_count_that_differs_is_the_last_word_of_build(tmp_path):
    shown = invoke("show", "tiny-gpt").stdout.replace("layers: 4", "layers: 2")
    (tmp_path / "changed.yaml").write_text(shown)
    result = invoke("build", "changed.yaml")
    assert result.exit_code == 1
    assert "11 passed" in result.stdout
    assert result.stderr.splitlines()[1:] == [
        "Nothing was exported. 2 failed:",
        "  changed.yaml:21:15: expect.parameters: expected 223,616, but built 124,160 (-99,456)",
        "    If the change is intended, remove expect.parameters, or set it to 124160.",
        "  changed.yaml:22:22: expect.modules[decoder]: decoder: expected 199,040, but built 99,584 (-99,456)",
        "    If the change is intended, remove expect.modules[decoder], or set it to 99584.",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["changed.yaml"]


@pytest.mark.parametrize("key", ["active_parameters", "modules"])
def test_every_kind_of_count_names_its_key(key):
    wrong = "expect.active_parameters=5" if key == "active_parameters" else "expect={modules: {head: 5}}"
    stated = "expect.active_parameters" if key == "active_parameters" else "expect.modules[head]"
    failures = invoke("params", "tiny-gpt", "--set", wrong).stderr.splitlines()[2:]
    assert failures[0].startswith(f"  {stated}: ")
    assert f"remove {stated}, or set it to " in failures[1]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["check", "build"])
def test_a_failed_check_is_the_last_word(monkeypatch, command):
    whole = functional.attention_bias
    monkeypatch.setattr(functional, "attention_bias", lambda *a, causal, **k: whole(*a, causal=False, **k))
    result = invoke(command, "tiny-gpt")
    assert result.exit_code == 1
    failures = result.stderr.splitlines()[1:]
    assert failures[0].endswith(" failed:")
    assert any(line.startswith("  causal: ") and "expected at most 1e-06" in line for line in failures)
    assert failures[-1] == "    Correct the module, or the weights, that the check ran on."


def test_a_failed_shape_is_the_last_word(monkeypatch):
    monkeypatch.setattr(shapes, "_problems", lambda modules: ["head has a size that depends on nothing"])
    result = invoke("check", "tiny-gpt")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[1:] == [
        "1 failed:",
        "  shapes: head has a size that depends on nothing",
        "    Correct the forward of this module, or the spec.",
    ]


def test_the_help_of_build_says_when_it_ends():
    text = " ".join(invoke("build", "--help-all").stdout.split())
    assert "Counts and checks run to the end even if one fails" in text
    assert "first failure" not in text
