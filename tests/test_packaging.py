"""The wheel: built, installed in a clean environment away from the checkout, and used there."""

import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from specs.files.schema import json_schema
from tests.docs.pages import blocks

ROOT = Path(__file__).parent.parent
PACKAGES = ("cli", "exporters", "specs", "zoo")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    directory = tmp_path_factory.mktemp("wheel")
    source = directory / "source"
    source.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
    run(sys.executable, "-m", "build", "--wheel", "--outdir", directory, source)
    (built,) = directory.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The ``zoo`` of an environment that has the wheel and what it depends on, and nothing of the checkout.

    The dependencies are those of this environment, file by file, as pip takes minutes to unpack them again.
    """
    directory = tmp_path_factory.mktemp("clean")
    venv.create(directory, with_pip=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": directory, "platbase": directory}))
    for each in dependencies(wheel):
        for file in each.files or ():
            if ".." not in file.parts:  # those are programs
                link(Path(str(each.locate_file(file))), site / file)
    python = directory / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel)
    run(python, "-m", "pip", "check")
    return directory / "bin" / "zoo"


def dependencies(wheel):
    """The packages that a wheel requires, those that they require, and so on."""
    (metadata,) = (path for path in zipfile.Path(wheel).iterdir() if path.name.endswith(".dist-info"))
    found: dict[tuple[str, str], Distribution] = {}
    waiting: list[tuple[Distribution, str]] = [(PathDistribution(metadata), "")]
    while waiting:
        package, extra = waiting.pop()
        for requirement in map(Requirement, package.requires or ()):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                required = distribution(requirement.name)
                assert requirement.specifier.contains(required.version, prereleases=True), requirement
                for each in ("", *requirement.extras):
                    if (required.name, each) not in found:
                        found[required.name, each] = required
                        waiting.append((required, each))
    return {required.name: required for required in found.values()}.values()


def link(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy(source, target)


def run(*command, **options):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    result = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env=environment, timeout=1500, **options
    )
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def test_the_wheel_has_the_four_packages_their_data_and_no_more(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names} == {*PACKAGES, "zoo-0.1.0.dist-info"}
    presets = {Path(name).stem for name in names if name.startswith("specs/presets/")}
    assert presets == {path.stem for path in (ROOT / "specs" / "presets").glob("*.yaml")}
    listed = subprocess.run(
        ["git", "ls-files", *PACKAGES], cwd=ROOT, capture_output=True, text=True, check=True
    )
    files = {name for name in listed.stdout.splitlines() if not name.startswith("cli/studio/bundle/")}
    assert {f"{package}/py.typed" for package in PACKAGES} <= files
    assert files <= set(names)


def test_the_wheel_stores_the_schema(wheel, installed, tmp_path):
    assert json.loads(zipfile.ZipFile(wheel).read("specs/zoo.schema.json")) == json_schema()
    python = installed.with_name("python")
    code = "import sys; from specs.files.stored_schema import spec_schema; print('$defs' in spec_schema(), 'pydantic' in sys.modules)"
    assert run(python, "-c", code, cwd=tmp_path) == "True False\n"


@pytest.mark.timeout(1800)
def test_an_installed_wheel_lists_and_builds(installed, tmp_path):
    assert "109M" in run(installed, "list", cwd=tmp_path)
    assert run(installed, "--version", cwd=tmp_path) == "zoo 0.1.0\n"
    (tmp_path / "small.yaml").write_text("extends: tiny-gpt\nname: small\ndecoder: {layers: 2}\n")
    run(installed, "build", "small.yaml", cwd=tmp_path)
    assert list((tmp_path / "build" / "small").glob("*.onnx"))


@pytest.mark.timeout(1800)
def test_an_installed_wheel_is_a_guest_in_a_project_with_the_same_names(installed, tmp_path):
    python = installed.with_name("python")
    for name in ("cli", "exporters", "specs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('code of the project')\n")
    (tmp_path / "cli" / "main.py").write_text("raise SystemExit('code of the project')\n")
    (tmp_path / "small.yaml").write_text("extends: tiny-gpt\nname: small\ndecoder: {layers: 2}\n")
    for program in ([python, "-m", "zoo"], [installed]):
        assert run(*program, "--version", cwd=tmp_path) == "zoo 0.1.0\n"
        assert run(*program, "validate", "small.yaml", cwd=tmp_path).startswith("small.yaml: OK")
    run("env", f"PYTHONPATH={tmp_path}", installed, "list", "tiny*", cwd=tmp_path)
    done = subprocess.run(
        [python, "-c", "import zoo"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert f"another one is in its way: {tmp_path / 'specs' / '__init__.py'}" in done.stderr
    assert (
        run(python, "-P", "-c", "import zoo; print(zoo.load('small.yaml').name)", cwd=tmp_path) == "small\n"
    )


@pytest.mark.timeout(1800)
@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="onnxruntime-gpu exists on x86-64 only"
)
def test_the_plain_onnxruntime_works_as_documented(installed, tmp_path):
    (commands,) = (
        block.text
        for block in blocks(ROOT / "docs" / "index.md")
        if "uninstall -y onnxruntime-gpu" in block.text
    )
    python = installed.with_name("python")
    for command in commands.splitlines():
        _, _, arguments = command.partition("$ pip ")
        constraints = ["-c", ROOT / "constraints.txt"] if arguments.startswith("install") else []
        try:
            run(python, "-m", "pip", *arguments.split(), *constraints)
        except AssertionError as error:
            if "connection broken" in str(error):
                pytest.skip("the package index cannot be reached")
            raise
    packages = run(python, "-m", "pip", "list", "--format=freeze")
    assert "onnxruntime==" in packages
    assert "onnxruntime-gpu" not in packages
    built = json.loads(run(installed, "build", "bert-tiny", "--json", cwd=tmp_path))
    assert built["export"]["verification"]["passed"]
