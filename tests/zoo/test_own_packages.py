"""A project with packages of the same names as zoo's: the program runs zoo's own, and ``import zoo`` names what is in the way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.thinned import one_in
from zoo.own_packages import ROOT, command_of

NAMES = ("cli", "exporters", "specs")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A project whose packages have the names of zoo's, each of which tells that it ran."""
    for name in NAMES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"print('{name} of the project')\n")
    for module in ("cli/main", "specs/load", "yaml"):
        (tmp_path / f"{module}.py").write_text(f"print('{module} of the project')\n")
    return tmp_path


def _python(project: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Python in a project, with zoo behind the working directory on its path, as an installation is."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=project, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


@one_in(3)
@pytest.mark.parametrize("started", [["-m", "zoo"], ["-mzoo"], ["-Bm", "zoo"]], ids=" ".join)
def test_the_program_runs_no_code_of_the_project(hostile: Path, started: list[str]) -> None:
    done = _python(hostile, *started, "validate", "tiny-gpt")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("tiny-gpt: OK")
    assert "of the project" not in done.stdout


def test_the_script_runs_no_code_of_the_project(hostile: Path, tmp_path: Path) -> None:
    script = tmp_path / "bin" / "zoo"
    script.parent.mkdir()
    script.write_text("from zoo.__main__ import main\nmain()\n")
    path = os.pathsep.join([str(hostile), str(ROOT)])
    (hostile / "yaml.py").unlink()  # a path that was asked for is searched
    done = _python(hostile, str(script), "list", "tiny*", PYTHONPATH=path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "of the project" not in done.stdout


@one_in(2)
@pytest.mark.parametrize("name", ["specs", "exporters"])
def test_an_import_names_what_is_in_the_way(hostile: Path, name: str) -> None:
    for other in {*NAMES} - {name}:
        (hostile / other / "__init__.py").unlink()
    done = _python(hostile, "-c", "import zoo")
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"ImportError: zoo has a package named '{name}', and another one is in its way: " in done.stderr
    assert str(hostile / name / "__init__.py") in done.stderr
    assert "Rename that one, or keep its directory off sys.path: run Python with -P" in done.stderr
    assert _python(hostile, "-P", "-c", "import zoo; zoo.load('tiny-gpt')").returncode == 0


def test_an_import_names_a_package_that_is_loaded_already(hostile: Path) -> None:
    done = _python(hostile, "-c", "import specs, sys; sys.path.pop(0); import zoo")
    assert done.returncode == 1
    assert str(hostile / "specs" / "__init__.py") in done.stderr


def test_a_single_file_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "specs.py").write_text("")
    done = _python(tmp_path, "-c", "import zoo")
    assert f"another one is in its way: {tmp_path / 'specs.py'}" in done.stderr


def test_folders_without_code_are_in_no_way(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).mkdir()
    (tmp_path / "cli" / "__init__.py").write_text("")
    done = _python(tmp_path, "-c", "import zoo; print(zoo.load('tiny-gpt').name)")
    assert (done.returncode, done.stdout) == (0, "tiny-gpt\n")


def test_processes_of_the_program_are_those_of_this_installation(hostile: Path) -> None:
    (hostile / "yaml.py").unlink()
    done = subprocess.run(
        command_of("exporters.benchmark.worker"),
        cwd=hostile, env={**os.environ, "PYTHONPATH": str(hostile)}, input="", capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert "of the project" not in done.stdout
    assert "Error" not in done.stderr
