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
HEAD = PLUGIN.parent / "ordered_classes"

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


@pytest.mark.slow
def test_a_plugin_kind_builds_checks_exports_and_verifies(site: Path, spec: Path, tmp_path: Path) -> None:
    done = zoo_with(site)("build", spec, "-o", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    kinds = {module["path"]: module["kind"] for module in report["parameters"]["modules"]}
    assert kinds["decoder.blocks.0.feed_forward"] == "squared_relu"
    assert report["behaviour"]["passed"]
    assert report["export"]["verification"]["passed"]


@pytest.mark.slow
def test_an_operation_of_a_plugin_is_one_entry(site: Path, spec: Path) -> None:
    done = zoo_with(site)("report", spec, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["estimated_operations"] == []
    inner = report["stages"]["prefill"]["modules"]["decoder.blocks.0.feed_forward"]
    assert inner["other"] == [{"coefficient": 2 * 32, "powers": {"B": 1, "T": 1}}]


@pytest.mark.slow
def test_an_operation_without_an_entry_is_named(spec: Path, tmp_path: Path) -> None:
    module = (PLUGIN / "zoo_squared_relu" / "module.py").read_text()
    module = module.replace("from zoo_squared_relu import operations as operations\n", "")
    kind = (PLUGIN / "zoo_squared_relu" / "spec.py").read_text()
    kind, module = (text.replace("zoo_squared_relu", "zoo_bare") for text in (kind, module))
    zoo = zoo_with(plugin(tmp_path, "zoo_bare", kind, module))
    assert json.loads(zoo("report", spec, "--json").stdout)["estimated_operations"] == ["square"]
    assert "Estimated FLOPs and activations: no entry in zoo.ops for square." in zoo("report", spec).stdout
    refused = zoo("build", spec, "-o", tmp_path / "out")
    assert refused.returncode == 2
    assert "feed_forward calls square, which has no ONNX emitter" in refused.stderr


@pytest.mark.slow
def test_a_plugin_kind_is_in_the_schema_and_in_suggestions(site: Path, spec: Path) -> None:
    zoo = zoo_with(site)
    assert '"squared_relu"' in zoo("schema").stdout
    assert zoo("validate", PLUGIN / "primer.yaml").returncode == 0
    wrong = zoo("validate", spec, "--set", "decoder.block.feed_forward.kind=sqared_relu")
    assert wrong.returncode == 2
    assert "Did you mean 'squared_relu'?" in wrong.stdout + wrong.stderr


@pytest.mark.slow
def test_the_head_of_the_guide_builds_checks_exports_and_is_drawn(tmp_path: Path) -> None:
    zoo = zoo_with(installed(HEAD, tmp_path))
    built = zoo("build", HEAD / "stars.yaml", "-o", tmp_path / "out", "--json")
    assert built.returncode == 0, built.stdout + built.stderr
    report = json.loads(built.stdout)
    assert report["behaviour"]["passed"]
    assert report["export"]["verification"]["passed"]
    shapes = {module["path"]: module["outputs"] for module in report["shapes"]["modules"]}
    assert shapes["head"] == ["logits: B x 4"]
    assert zoo("draw", HEAD / "stars.yaml", "-o", tmp_path / "stars.svg").returncode == 0
    drawing = (tmp_path / "stars.svg").read_text("utf-8")
    assert all(words in drawing for words in ("Ordered classes", "4 thresholds", "mean of tokens"))


def test_without_the_plugin_its_kind_is_unknown(spec: Path) -> None:
    wrong = zoo_with()("validate", spec)
    assert wrong.returncode == 2
    assert "must be a registered feed_forward kind" in wrong.stdout + wrong.stderr


def plugin(place: Path, name: str, spec: str, module: str = "") -> Path:
    """Write a plugin as an installer leaves it, and return its directory."""
    site = place / f"{name}-site"
    (site / name).mkdir(parents=True)
    (site / name / "__init__.py").touch()
    (site / name / "spec.py").write_text(spec)
    (site / name / "module.py").write_text(module)
    metadata = site / f"{name}-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    (metadata / "entry_points.txt").write_text(f"[zoo.components]\nsquared_relu = {name}.spec\n")
    return site


def test_a_plugin_that_fails_to_import_is_named_and_breaks_nothing_else(spec: Path, tmp_path: Path) -> None:
    whole = plugin(tmp_path, "zoo_squared_relu", (PLUGIN / "zoo_squared_relu" / "spec.py").read_text())
    broken = plugin(tmp_path, "zoo_broken", "raise RuntimeError('no licence')")
    done = zoo_with(whole, broken)("validate", spec, "bert-base")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        "plugin 'squared_relu' of zoo_broken (zoo_broken.spec) cannot be loaded: RuntimeError: no licence"
        in done.stderr
    )


def test_a_kind_registered_twice_is_named(tmp_path: Path) -> None:
    again = (PLUGIN / "zoo_squared_relu" / "spec.py").read_text().replace('"squared_relu"', '"mlp"')
    done = zoo_with(plugin(tmp_path, "zoo_again", again))("validate", "bert-base")
    assert done.returncode == 0
    assert (
        "feed_forward kind 'mlp' is registered twice: by specs.kinds.feed_forward.MLP and by zoo_again.spec.SquaredReLU"
        in done.stderr
    )


def test_a_kind_that_does_not_extend_the_class_of_its_slot_is_named(tmp_path: Path) -> None:
    head = (PLUGIN / "zoo_squared_relu" / "spec.py").read_text().replace('"feed_forward"', '"head"')
    done = zoo_with(plugin(tmp_path, "zoo_bare_head", head))("validate", "bert-base")
    assert done.returncode == 0
    assert (
        "head kind 'squared_relu' must extend specs.kinds.head.HeadKind, and zoo_bare_head.spec.SquaredReLU does not"
        in done.stderr
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("implementation", "remedy"),
    [
        (
            ', implementation="zoo_unbuilt.module"',
            "Decorate its module in zoo_unbuilt.module with zoo.registry.builds.",
        ),
        (
            "",
            "Name the module that builds it where zoo_unbuilt.spec.SquaredReLU is registered: "
            "register('feed_forward', implementation='package.module').",
        ),
    ],
)
def test_a_kind_without_a_builder_is_reported(
    implementation: str, remedy: str, spec: Path, tmp_path: Path
) -> None:
    text = (PLUGIN / "zoo_squared_relu" / "spec.py").read_text()
    text = text.replace(', implementation="zoo_squared_relu.module"', implementation)
    done = zoo_with(plugin(tmp_path, "zoo_unbuilt", text))("params", spec)
    assert done.returncode == 2
    assert f"Kind 'squared_relu' has no builder\n  {remedy}" in done.stderr


@pytest.mark.slow
def test_an_implementation_that_fails_to_import_is_reported(spec: Path, tmp_path: Path) -> None:
    text = (PLUGIN / "zoo_squared_relu" / "spec.py").read_text().replace("zoo_squared_relu", "zoo_lame")
    done = zoo_with(plugin(tmp_path, "zoo_lame", text, "import nowhere_to_be_found"))("params", spec)
    assert done.returncode == 2
    assert (
        "kind 'squared_relu' needs zoo_lame.module, which cannot be loaded: ModuleNotFoundError: No module named 'nowhere_to_be_found'"
        in done.stderr
    )
