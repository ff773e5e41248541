"""A third-party component from a separate installed package, through the whole command line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parents[1] / "examples" / "plugin"

SPEC = """
name: primer
architecture: decoder
vocab_size: 50
d_model: 16
context_length: 32
position: {kind: learned}
decoder:
  layers: 2
  block:
    kind: pre_norm
    norm: {kind: layer_norm}
    attention: {kind: multi_head, heads: 2}
    feed_forward: {kind: squared_relu, hidden: 32}
head: {kind: language_modeling}
"""

Zoo = Callable[..., "subprocess.CompletedProcess[str]"]


def installed(source: Path, place: Path) -> Path:
    """Install a package into a directory of its own."""
    copy = place / "source"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--target", str(place / "site"), str(copy)], check=True)
    return place / "site"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(PLUGIN, tmp_path_factory.mktemp("plugin"))


def zoo_with(*sites: Path) -> Zoo:
    """The command line with the packages of some directories installed."""

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sites))}
        command = [sys.executable, "-c", "from cli.main import main; main()", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    return run


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "primer.yaml"
    path.write_text(SPEC)
    return path


def test_a_plugin_kind_builds_checks_exports_and_verifies(site: Path, spec: Path, tmp_path: Path) -> None:
    done = zoo_with(site)("build", spec, "-o", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    kinds = {module["path"]: module["kind"] for module in report["parameters"]["modules"]}
    assert kinds["decoder.blocks.0.feed_forward"] == "squared_relu"
    assert report["behaviour"]["passed"]
    assert report["export"]["verification"]["passed"]


def test_a_plugin_kind_is_in_the_schema_and_in_suggestions(site: Path, spec: Path) -> None:
    zoo = zoo_with(site)
    assert '"squared_relu"' in zoo("schema").stdout
    assert zoo("validate", PLUGIN / "primer.yaml").returncode == 0
    wrong = zoo("validate", spec, "--set", "decoder.block.feed_forward.kind=sqared_relu")
    assert wrong.returncode == 2
    assert "did you mean 'squared_relu'?" in wrong.stdout + wrong.stderr


def test_without_the_plugin_its_kind_is_unknown(spec: Path) -> None:
    wrong = zoo_with()("validate", spec)
    assert wrong.returncode == 2
    assert "must be a registered feed_forward kind" in wrong.stdout + wrong.stderr


def broken_plugin(place: Path, name: str, spec: str, module: str = "") -> Path:
    """A plugin made on the spot."""
    source = place / "broken"
    package = source / name
    package.mkdir(parents=True)
    text = (
        (PLUGIN / "pyproject.toml")
        .read_text()
        .replace("zoo_squared_relu", name)
        .replace("zoo-squared-relu", name)
    )
    (source / "pyproject.toml").write_text(text)
    (package / "__init__.py").touch()
    (package / "spec.py").write_text(spec)
    (package / "module.py").write_text(module)
    return installed(source, place)


def test_a_plugin_that_fails_to_import_is_named_and_breaks_nothing_else(
    spec: Path, site: Path, tmp_path: Path
) -> None:
    broken = broken_plugin(tmp_path, "zoo_broken", "raise RuntimeError('no licence')")
    done = zoo_with(site, broken)("validate", spec, "bert-base")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        "plugin 'squared_relu' of zoo_broken (zoo_broken.spec) cannot be loaded: RuntimeError: no licence"
        in done.stderr
    )


def test_a_kind_registered_twice_is_named(tmp_path: Path) -> None:
    again = (PLUGIN / "zoo_squared_relu" / "spec.py").read_text().replace('"squared_relu"', '"mlp"')
    done = zoo_with(broken_plugin(tmp_path, "zoo_again", again))("validate", "bert-base")
    assert done.returncode == 0
    assert (
        "feed_forward kind 'mlp' is registered twice: by specs.feed_forward.MLP and by zoo_again.spec.SquaredReLU"
        in done.stderr
    )


@pytest.mark.slow
def test_a_kind_that_nothing_builds_is_told(spec: Path, tmp_path: Path) -> None:
    text = (PLUGIN / "zoo_squared_relu" / "spec.py").read_text().replace("zoo_squared_relu", "zoo_unbuilt")
    done = zoo_with(broken_plugin(tmp_path, "zoo_unbuilt", text))("params", spec)
    assert done.returncode == 2
    assert "nothing builds kind 'squared_relu': decorate its module with zoo.registry.builds" in done.stderr


@pytest.mark.slow
def test_an_implementation_that_fails_to_import_is_told(spec: Path, tmp_path: Path) -> None:
    text = (PLUGIN / "zoo_squared_relu" / "spec.py").read_text().replace("zoo_squared_relu", "zoo_lame")
    done = zoo_with(broken_plugin(tmp_path, "zoo_lame", text, "import nowhere_to_be_found"))("params", spec)
    assert done.returncode == 2
    assert (
        "kind 'squared_relu' needs zoo_lame.module, which cannot be loaded: ModuleNotFoundError: No module named 'nowhere_to_be_found'"
        in done.stderr
    )
