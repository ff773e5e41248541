"""The wheel: built, installed in a clean environment away from the checkout, and used there."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("cli", "exporters", "specs", "zoo")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    directory = tmp_path_factory.mktemp("wheel")
    source = directory / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
    run(sys.executable, "-m", "build", "--wheel", "--outdir", directory, source)
    (built,) = directory.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The ``zoo`` of an environment that has the wheel and what it depends on, and nothing of the checkout."""
    directory = tmp_path_factory.mktemp("clean")
    venv.create(directory, with_pip=True)
    python = directory / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel)
    return directory / "bin" / "zoo"


def run(*command, **options):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    result = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env=environment, timeout=1500, **options
    )
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def test_the_wheel_has_the_four_packages_the_presets_and_no_more(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names} == {*PACKAGES, "zoo-0.1.0.dist-info"}
    presets = {Path(name).stem for name in names if name.startswith("specs/presets/")}
    assert presets == {path.stem for path in (ROOT / "specs" / "presets").glob("*.yaml")}
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(names)


@pytest.mark.timeout(1800)
def test_an_installed_wheel_lists_and_builds(installed, tmp_path):
    assert "109,482,240" in run(installed, "list", cwd=tmp_path)
    assert run(installed, "--version", cwd=tmp_path) == "zoo 0.1.0\n"
    (tmp_path / "small.yaml").write_text("extends: tiny-gpt\nname: small\ndecoder: {layers: 2}\n")
    run(installed, "build", "small.yaml", cwd=tmp_path)
    assert list((tmp_path / "build" / "small").glob("*.onnx"))
