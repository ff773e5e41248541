"""``zoo make`` and ``zoo cache``, as programs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import ZOO, environment, in_terminal, zoo
from tests.exporters.making.zoos import two_models, write_spec
from tests.thinned import one_in


@pytest.fixture
def place(tmp_path: Path) -> Path:
    two_models(tmp_path)
    return tmp_path


def run(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    settings: dict[str, Any] = {"cwd": place, "env": environment(ZOO_CACHE_DIR=str(place / "cache"))}
    return zoo(*arguments, **settings)


@pytest.mark.slow
def test_a_zoo_is_planned_made_and_checked(place: Path) -> None:
    planned = run(place, "make", "--plan")
    assert planned.returncode == 0
    assert " build   a/portable-fp32  not built yet\n          a/portable-fp16\n" in planned.stdout
    assert "0 of 3 artefacts up to date, checked in " in planned.stdout
    assert not (place / "build").exists()
    assert run(place, "make", "--check").returncode == 1

    made = run(place, "make", "a", "-j", "2")
    assert made.returncode == 0, made.stderr
    assert "2 artefacts: 2 built in " in made.stdout
    assert "[2/2] a/portable-" in made.stderr
    checked = run(place, "make", "--check", "--json")
    assert checked.returncode == 1
    assert {step["artefact"]: step["state"] for step in json.loads(checked.stdout)["steps"]} == {
        "a/portable-fp32": "current",
        "a/portable-fp16": "current",
        "b/portable-fp32": "build",
    }
    assert run(place, "make", "--check", "a").returncode == 0

    write_spec(place, "b", hidden=0)
    failed = run(place, "make", "--json")
    assert failed.returncode == 2
    (only,) = json.loads(failed.stdout)["errors"]
    assert "encoder.block.feed_forward.hidden: must be greater than 0" in only["message"]
    assert "encoder.block.feed_forward.hidden: must be greater than 0" in run(place, "make").stderr

    listed = run(place, "cache")
    assert "a portable fp16" in listed.stdout
    assert "2 artefacts" in listed.stdout
    pruned = json.loads(run(place, "cache", "--prune", "--limit", "0B", "--json").stdout)
    assert len(pruned["removed"]) == 2
    assert run(place, "make", "--check", "a").returncode == 0


@pytest.mark.slow
def test_an_up_to_date_zoo_does_not_import_torch(place: Path) -> None:
    assert run(place, "make").returncode == 0
    settings = environment(ZOO_CACHE_DIR=str(place / "cache"))
    again = subprocess.run(
        [sys.executable, "-X", "importtime", *ZOO[1:], "make", str(place)],
        env=settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "3 artefacts: 3 already up to date in " in again.stdout, again.stderr
    assert "exporters.making" in again.stderr
    assert " torch\n" not in again.stderr


@pytest.mark.slow
def test_progress_over_all_in_a_terminal(place: Path) -> None:
    _, err = in_terminal(
        [*ZOO, "make"], place, ZOO_CACHE_DIR=str(place / "cache"), PYTHONPATH=str(Path.cwd())
    )
    for done, name in enumerate(("a/portable-fp32", "a/portable-fp16", "b/portable-fp32")):
        assert f"[{done}/3] {name}: trace" in err
        assert f"[{done + 1}/3] {name}: built" in err


@one_in(3)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["make", "c"], "zoo.yaml has no model, group or artefact of this name."),
        (["make", "other.yaml"], "other.yaml: the file must exist"),
        (["make", "--executor", "kubernetes"], "Executor 'kubernetes' is unknown."),
        (["cache", "--limit", "5GB"], "apply only to pruning"),
        (["cache", "--prune", "--limit", "much"], "--limit must be a size"),
    ],
)
def test_mistakes_are_explained(arguments: list[str], message: str, place: Path) -> None:
    found = run(place, *arguments)
    assert found.returncode == 2
    assert message in found.stderr.replace("\n", " ").replace("  ", " ")
    assert not (place / "build").exists()


def test_a_limit_of_the_environment_must_be_a_size(place: Path) -> None:
    env = environment(ZOO_CACHE_LIMIT="big")
    found = zoo("cache", env=env)
    assert found.returncode == 2
    assert "ZOO_CACHE_LIMIT must be a size" in found.stderr
