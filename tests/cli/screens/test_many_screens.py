"""The default screens of make, catalog, cache, push, pull and sign, as printed at 80 columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.making.output import print_failures, print_made
from cli.terminal.screen import Screen
from exporters.making.artefacts import read_zoo
from exporters.making.cache import Cache
from exporters.making.make import BuildResult
from exporters.making.plan import make_plan
from tests.cli.screens.screens import Zoo, check_screen, check_size, zoo_in
from tests.exporters.making.zoos import two_models, write_spec


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Zoo:
    """Run a command that ends with a status next to a zoo file, and return what it prints to both streams."""
    zoo = zoo_in(tmp_path, monkeypatch)
    monkeypatch.setenv("ZOO_CACHE_DIR", str(tmp_path / "cache"))
    two_models(tmp_path)

    return lambda *arguments, status=0: zoo(*arguments, status=status).replace(str(tmp_path), "HERE")


@pytest.mark.slow
def test_a_zoo_from_its_plan_to_a_published_export(zoo: Zoo, tmp_path: Path) -> None:
    check_screen("make-plan", zoo("make", "--plan"))
    check_size(zoo("make"))
    check_screen("make-current", zoo("make"))
    write_spec(tmp_path, "a", hidden=32)
    check_screen("make-plan-changed", zoo("make", "--plan"))
    check_screen("make-check", zoo("make", "--check", status=1))
    assert zoo("make", "--check", "-q", status=1) == (
        "Not up to date: a/portable-fp32, a/portable-fp16\n    Run zoo make.\n"
    )
    check_size(zoo("catalog"))
    check_size(zoo("cache"))
    pushed = zoo("push", "build/a/portable-fp32", "--to", "there", "--dry-run", "--unverified")
    pulled = zoo("push", "build/a/portable-fp32", "--to", "there", "--unverified") and zoo(
        "pull", "there", "-o", "back"
    )
    for output in (pushed, pulled):
        check_size(output)
        assert "6 files" in output  # both count the same files
    (tmp_path / "build/a/portable-fp32/model.onnx").write_bytes(b"")
    damaged = zoo("catalog", status=1)
    assert "\n1 artefact not as built:\n  a/portable-fp32: model.onnx has 0 bytes" in damaged
    assert zoo("catalog", "-q", status=1).startswith("1 artefact not as built:")


def test_many_artefacts_have_a_line_each_up_to_ten_and_a_cause_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    models = "".join(f"  model-{index}: {{spec: a.yaml}}\n" for index in range(7))
    write_spec(tmp_path, "a")
    (tmp_path / "zoo.yaml").write_text(f"defaults:\n  matrix: {{precision: [fp32, int8]}}\nmodels:\n{models}")
    plan = make_plan(read_zoo(tmp_path / "zoo.yaml"), (), Cache(tmp_path / "cache"))
    made = [BuildResult(step, "failed", 2.0, "no room\n  Free some.") for step in plan.steps]
    screen = Screen()
    print_made(screen, plan, made)
    print_failures(screen, made)
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 14
    assert printed.out.count("not built yet") == 1
    assert "\u2026 and 4 more, which -v lists" in printed.out
    assert "14 artefacts: 14 failed in " in printed.out
    assert printed.err.count("no room") == 1
