"""The files around the code: CI runs one list of steps, the package has its license, and classes have names of their own."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]


def test_the_workflow_runs_what_ci_runs():
    steps = re.findall(r"^\s*make ([\w-]+)", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    assert workflow["jobs"]["make"]["strategy"]["matrix"]["target"] == steps
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(steps) <= targets


def test_the_documentation_is_published_from_where_make_docs_writes_it():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "site.yml").read_text())["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    assert "make docs" in [step.get("run") for step in steps]
    (uploaded,) = (step for step in steps if "upload-pages-artifact" in step.get("uses", ""))
    assert f"site_dir: {uploaded['with']['path']}\n" in (ROOT / "mkdocs.yml").read_text()
    assert jobs["publish"]["permissions"] == {"pages": "write", "id-token": "write"}


def test_workflows_use_stated_versions_of_actions():
    for workflow in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        for job in yaml.safe_load(workflow.read_text())["jobs"].values():
            used = [step["uses"] for step in job["steps"] if "uses" in step]
            assert [name for name in used if not re.fullmatch(r"actions/[\w-]+@v\d+", name)] == [], (
                workflow.name
            )


def test_hooks_run_the_tools_of_make_test():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    makefile = (ROOT / "Makefile").read_text()
    for hook in hooks:
        tool = hook["entry"].split()[0].removeprefix(".venv/bin/")
        assert f"$(BIN)/{tool}" in makefile, tool


def test_the_package_has_its_license():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license"] == "Apache-2.0"
    text = (ROOT / project["license-files"][0]).read_text()
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text


@pytest.mark.parametrize(
    ("system", "machine", "package"),
    [
        ("linux", "x86_64", "onnxruntime-gpu"),
        ("win32", "AMD64", "onnxruntime-gpu"),
        ("linux", "aarch64", "onnxruntime"),
        ("win32", "ARM64", "onnxruntime"),
        ("darwin", "arm64", "onnxruntime"),
        ("darwin", "x86_64", "onnxruntime"),
    ],
)
def test_one_onnx_runtime_is_installed_where_it_exists(system, machine, package):
    required = map(
        Requirement, tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    )
    place = {"sys_platform": system, "platform_machine": machine}
    found = [each.name for each in required if not each.marker or each.marker.evaluate(place)]
    assert [name for name in found if name.startswith("onnxruntime")] == [package]


def test_issue_forms_are_valid_yaml():
    for form in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")):
        data = yaml.safe_load(form.read_text())
        if form.name != "config.yml":
            assert {"name", "description", "body"} <= set(data)
            assert all(field.get("id") and field["attributes"]["label"] for field in data["body"])
