"""The default screens of report, check, params, diff, compare and eval, as printed at 80 columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.screens.screens import MOST_LINES, WIDTH, Zoo, check_screen, check_size, unchanging, zoo_in
from zoo import functional

SCREENS = {
    "report": ["report", "tiny-gpt"],
    "report-encoder-decoder": ["report", "t5-small"],
    "report-mixture": ["report", "mixtral-8x7b", "--batch", "8"],
    "report-mesh": ["report", "tiny-gpt", "--mesh", "dp=2", "--device", "h100"],
    "params": ["params", "bert-base"],
    "params-mixture": ["params", "deepseek-v3"],
    "params-modules": ["params", "gpt2", "--path", "decoder.blocks.0", "--path", "embedding"],
    "check": ["check", "tiny-gpt"],
    "diff": ["diff", "gpt2", "--set", "decoder.layers=6"],
    "diff-many": ["diff", "bert-base", "deepseek-v3"],
    "diff-same": ["diff", "gpt2", "gpt2"],
    "draw": ["draw", "tiny-gpt"],
    "attend": ["attend", "tiny-gpt", "--ids", "1,2,3"],
}
SLOW = {"report-encoder-decoder", "report-mixture", "params-mixture", "check", "diff-many"}
DIFFERENT = {"diff", "diff-many"}
"""Screens of models that differ, with exit status 1."""


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Zoo:
    """Run a command that ends with a status in an empty directory, and return what it prints to both streams."""
    return zoo_in(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in SCREENS]
)
def test_a_screen_is_its_golden(zoo: Zoo, name: str) -> None:
    check_screen(name, zoo(*SCREENS[name], status=name in DIFFERENT))


@pytest.mark.parametrize("name", ["params", "diff-same"])
def test_a_narrow_terminal_and_a_pipe_have_the_same_screen(
    zoo: Zoo, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    piped = zoo(*SCREENS[name])
    monkeypatch.setenv("COLUMNS", "80")
    assert unchanging(zoo(*SCREENS[name])) == unchanging(piped)


def test_quiet_prints_nothing(zoo: Zoo) -> None:
    assert zoo("params", "bert-tiny", "-q") == ""
    assert zoo("draw", "bert-tiny", "-q", "-o", "x.svg") == ""
    assert "mutually exclusive" in zoo("params", "bert-tiny", "-q", "-v", status=2)


def test_both_next_steps_of_a_page_are_of_the_same_model(zoo: Zoo) -> None:
    output = zoo("report", "tiny-gpt", "--set", "decoder.layers=1", "--device", "h100", "--html", "page.html")
    check_screen("report-html", output)
    figures, drawing = (line.split("#")[0].split()[1:] for line in output.splitlines() if "  zoo " in line)
    assert "74,432 parameters" in zoo(*figures)
    zoo(*drawing)
    assert "tiny-gpt+decoder.layers=1" in Path("report.svg").read_text("utf-8")


def test_options_of_tables_print_them(zoo: Zoo) -> None:
    assert "kind" in zoo("params", "bert-tiny", "--depth", "4")
    assert "kind" not in zoo("params", "bert-tiny")


def test_a_wrong_count_is_the_last_line_with_its_remedy(zoo: Zoo) -> None:
    output = zoo("params", "tiny-gpt", "--set", "expect.parameters=5", status=1)
    check_screen("params-unexpected", output)
    quiet = zoo("params", "tiny-gpt", "--set", "expect.parameters=5", "-q", status=1)
    assert output.endswith(quiet)


@pytest.mark.slow
def test_checks_that_fail_are_the_last_lines_with_their_remedy(
    zoo: Zoo, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = functional.attention_bias
    monkeypatch.setattr(functional, "attention_bias", lambda *a, causal, **k: whole(*a, causal=False, **k))
    output = zoo("check", "tiny-gpt", status=1)
    assert output.endswith("    Correct the module, or the weights, that the check ran on.\n")
    assert max(map(len, output.splitlines())) <= WIDTH


@pytest.mark.slow
def test_compare_has_its_curve_and_ranks_nothing_by_noise(zoo: Zoo) -> None:
    output = zoo("compare", "tiny-gpt", "--with", "position.kind=none", "--steps", "2", "--batch", "2")
    assert "None has solved the task within 2 steps." in output
    assert "# train for longer" in output
    lines = output.splitlines()
    assert max(map(len, lines)) <= WIDTH
    curve = lines.index(next(line for line in lines if line.startswith("training loss")))
    after = lines.index("None has solved the task within 2 steps.")
    assert len(lines) - (after - curve) <= MOST_LINES


def test_exports_are_measured_and_compared(zoo: Zoo) -> None:
    for precision in ("fp32", "int8"):
        zoo("export", "tiny-gpt", "--precision", precision, "--no-verify", "-q", "-o", precision)
    check_size(zoo("diff", "fp32", "int8", status=1))
    check_screen("eval", zoo("eval", "fp32"))
    Path("int8/model.onnx").write_bytes(b"")
    changed = zoo("diff", "int8", "int8", status=1)
    assert changed.endswith("    Export the model again, or restore the files.\n")
    assert "equal, and both exports" not in changed
