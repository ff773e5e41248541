"""The GitHub action and the pre-commit hooks: what they run, run as written on a small zoo."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.process import environment

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
PRE_COMMIT = Path(sys.executable).with_name("pre-commit")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with two specs and a zoo of one artefact, which is not built yet."""
    place = tmp_path / "project"
    (place / "specs").mkdir(parents=True)
    for name in ("one", "two"):
        (place / "specs" / f"{name}.yaml").write_text(f"extends: tiny-gpt\nname: {name}\n")
    (place / "zoo.yaml").write_text(
        "models:\n  one: {spec: specs/one.yaml, weights: none, options: {verify: false}}\n"
    )
    return place


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    """The environment of a runner: a ``zoo`` on the path, and a ``python`` that notes what it is asked to install."""
    programs = tmp_path / "bin"
    programs.mkdir()
    run = f'exec {sys.executable} -c "from cli.main import main; main()" "$@"'
    for name, line in (("zoo", run), ("python", f'echo "$@" >> {tmp_path}/python.log')):
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o755)
    return environment(
        PATH=f"{programs}{os.pathsep}{os.environ['PATH']}",
        PYTHONPATH=str(ROOT),
        ZOO_CACHE_DIR=str(tmp_path / "cache"),
        GITHUB_ACTION_PATH=str(ROOT),
        PRE_COMMIT_HOME=str(tmp_path / "pre-commit"),
    )


def step(name: str) -> dict[str, Any]:
    (found,) = [each for each in ACTION["runs"]["steps"] if each.get("name") == name]
    return found


def run_step(
    name: str, inputs: dict[str, str], cwd: Path, settings: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a step as a runner does: its inputs in its environment, and its script in bash."""
    found = step(name)
    given = {f"${{{{ inputs.{key} }}}}": value for key, value in inputs.items()}
    variables = {variable: given[text] for variable, text in found["env"].items()}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", found["run"]]
    return subprocess.run(
        command,
        cwd=cwd,
        env={**settings, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_action_is_one_of_github():
    assert ACTION["runs"]["using"] == "composite"
    assert all(set(each) == {"description", "default"} for each in ACTION["inputs"].values())
    for each in ACTION["runs"]["steps"]:
        assert "uses" in each or each["shell"] == "bash"
        assert "${{" not in each.get("run", "")  # inputs come as variables, and are no part of a script
        condition = each.get("if", "")
        assert not condition or condition.split()[0].removeprefix("inputs.") in ACTION["inputs"]


@pytest.mark.parametrize(("constraints", "expected"), [("", f"install --disable-pip-version-check {ROOT}"),
                                                       ("pins.txt", f"-c pins.txt {ROOT}")])  # fmt: skip
def test_the_action_installs_zoo(constraints, expected, tmp_path, settings):
    done = run_step("Install zoo", {"constraints": constraints}, tmp_path, settings)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "python.log").read_text().startswith("-m pip install")
    assert (tmp_path / "python.log").read_text().endswith(f"{expected}\n")


@pytest.mark.slow
def test_the_action_validates_specs(project, settings):
    inputs = {"specs": "specs/*.yaml tiny-gpt"}
    done = run_step("Validate specs", inputs, project, settings)
    assert done.returncode == 0, done.stderr
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [
        "specs/one.yaml",
        "specs/two.yaml",
        "tiny-gpt",
    ]
    (project / "specs" / "two.yaml").write_text("extends: tiny-gpt\nd_modle: 3\n")
    done = run_step("Validate specs", inputs, project, settings)
    assert done.returncode == 2
    assert "specs/two.yaml:2:1: d_modle" in done.stderr


@pytest.mark.slow
def test_the_action_checks_artefacts(project, settings):
    name, inputs = "Check that artefacts are up to date", {"zoo-file": "zoo.yaml"}
    done = run_step(name, inputs, project, settings)
    assert (done.returncode, "0 of 1 artefact up to date" in done.stdout) == (1, True), done.stderr
    subprocess.run(["zoo", "make"], cwd=project, env=settings, check=True, capture_output=True)
    assert run_step(name, inputs, project, settings).returncode == 0
    shutil.rmtree(project / "build")  # a fresh clone has the lock file alone
    assert run_step(name, inputs, project, settings).returncode == 0
    (project / "specs" / "one.yaml").write_text("extends: tiny-gpt\nname: one\ncontext_length: 64\n")
    done = run_step(name, inputs, project, settings)
    assert done.returncode == 1
    assert "one" in done.stdout


@pytest.fixture
def pre_commit(tmp_path, project, settings):
    """Runs a hook with pre-commit itself, from a repository that has our hooks."""
    if not PRE_COMMIT.is_file():
        pytest.skip("no pre-commit to test with: pip install pre-commit")
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    shutil.copy(ROOT / ".pre-commit-hooks.yaml", hooks)
    author = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"]
    for place in (hooks, project):
        for words in (["init", "-q"], ["add", "-A"], [*author, "commit", "-qm", "files"]):
            subprocess.run(["git", *words], cwd=place, check=True)

    def run(hook: str, *files: str) -> subprocess.CompletedProcess[str]:
        chosen = ["--files", *files] if files else ["--all-files"]
        return subprocess.run(
            [PRE_COMMIT, "try-repo", hooks, hook, "--verbose", *chosen],
            cwd=project, env=settings, capture_output=True, text=True, check=False,
        )  # fmt: skip

    return run


@pytest.mark.slow
def test_the_hook_validates_changed_specs(pre_commit, project):
    done = pre_commit("zoo-validate", "specs/one.yaml", "zoo.yaml")
    assert done.returncode == 0, done.stdout
    assert "specs/one.yaml: OK" in done.stdout
    assert "two.yaml" not in done.stdout
    assert "zoo.yaml:" not in done.stdout  # it is no spec
    (project / "specs" / "two.yaml").write_text("extends: tiny-gpt\nd_modle: 3\n")
    done = pre_commit("zoo-validate", "specs/two.yaml")
    assert done.returncode == 1
    assert "specs/two.yaml:2:1: d_modle" in done.stdout


@pytest.mark.slow
def test_the_hook_checks_artefacts(pre_commit, project):
    done = pre_commit("zoo-make-check")
    assert done.returncode == 1
    assert "0 of 1 artefact up to date" in done.stdout


def test_the_documented_files_use_inputs_and_hooks_that_there_are():
    (job,) = yaml.safe_load((ROOT / "examples" / "workflow.yml").read_text())["jobs"].values()
    assert set(job["steps"][-1]["with"]) <= set(ACTION["inputs"])
    (repo,) = yaml.safe_load((ROOT / "examples" / "pre-commit-config.yaml").read_text())["repos"]
    assert [hook["id"] for hook in repo["hooks"]] == list(HOOKS)


def test_the_hooks_run_commands_of_zoo():
    assert {hook["entry"] for hook in HOOKS.values()} == {"zoo validate", "zoo make --check"}
    assert {hook["language"] for hook in HOOKS.values()} == {"system"}
