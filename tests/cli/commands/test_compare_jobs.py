"""``zoo compare --jobs``: processes train a model each, with the results of one process; a killed process is reported."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import ZOO, environment, in_terminal, wait_for_end
from tests.cli.program import done, invoke, refused
from zoo.training import comparison

pytestmark = pytest.mark.usefixtures("empty_directory")

SPEEDS = {"steps_per_second", "tokens_per_second"}
LONG = (*ZOO, "compare", "tiny-gpt", "bert-tiny", "--steps", "150", "--batch", "8", "--jobs", "2", "--json")
Run = Callable[..., Any]


def started(directory: Path, count: int = 2) -> tuple[subprocess.Popen[bytes], list[int]]:
    """A comparison of ``count`` models that are being trained, and the ids of the processes that train them."""
    process = subprocess.Popen(
        LONG, cwd=directory, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while len(list(directory.glob("build/compare/*/state.pt"))) < count:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    children = [
        int(child)
        for task in Path(f"/proc/{process.pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
    assert len(children) == count
    return process, children


@pytest.mark.slow
def test_processes_give_the_results_of_one() -> None:
    options = (
        "tiny-gpt", "--with", "position.kind=rope", "bert-tiny", "tiny-gpt", "--width", "32", "--steps", "12",
        "--json",
    )  # fmt: skip
    together = invoke("compare", *options, "--jobs", "3", "-o", "together.json")
    saved = invoke("compare", *options, "--jobs", "3")
    alone = invoke("compare", *options, "--force")
    assert (together.exit_code, saved.exit_code, alone.exit_code) == (0, 0, 0), together.stderr
    data, again, plain = (json.loads(each.stdout) for each in (together, saved, alone))
    assert json.loads(Path("together.json").read_text()) == {**data, "written_by": "zoo"}
    assert [each["kept"] for each in again["results"]] == [True] * 4
    for ours, theirs in zip(data["results"], plain["results"], strict=True):
        for name in {*ours, *theirs} - SPEEDS - {"losses", "scores", "loss"}:
            assert ours[name] == theirs[name], name
        assert ours["losses"] == pytest.approx(theirs["losses"], rel=1e-5)
        assert ours["scores"][-1]["loss"] == pytest.approx(theirs["scores"][-1]["loss"], rel=1e-5)
        assert ours["steps_per_second"] > 0
    assert {path.name for path in Path().glob("build/compare/*/*")} == {"result.json", "settings.json"}
    assert len(list(Path().glob("build/compare/*"))) == 3  # equal specs are trained once


@pytest.mark.slow
def test_every_process_has_a_bar(tmp_path: Path) -> None:
    command = [*ZOO, "compare", "tiny-gpt", "bert-tiny", "--steps", "8", "--batch", "2", "--jobs", "2"]
    out, progress = in_terminal(command, tmp_path)
    assert "tiny-gpt" in out
    for label in ("tiny-gpt", "bert-tiny"):
        assert label in progress
    assert "8/8" in progress


@pytest.mark.slow
def test_a_killed_process_is_reported_and_training_resumes(tmp_path: Path) -> None:
    process, children = started(tmp_path)
    os.kill(children[1], signal.SIGKILL)
    out, err = process.communicate()
    assert (process.returncode, err) == (2, b"")
    assert json.loads(out)["errors"] == [
        {
            "message": "The process that trained bert-tiny was ended by SIGKILL (out of memory?)\n"
            "  Run the command again to resume; a smaller --jobs needs less memory."
        }
    ]
    wait_for_end(children[0])
    assert list(tmp_path.glob("build/compare/*/state.pt"))
    again = subprocess.run(LONG, cwd=tmp_path, env=environment(), capture_output=True, check=True)
    plain = subprocess.run(
        [*LONG[:-3], "--json", "--force"], cwd=tmp_path, env=environment(), capture_output=True, check=True
    )  # fmt: skip
    for ours, theirs in zip(*(json.loads(each.stdout)["results"] for each in (again, plain)), strict=True):
        assert ours["losses"] == pytest.approx(theirs["losses"], rel=1e-5)


@pytest.mark.slow
def test_ctrl_c_stops_every_process(tmp_path: Path) -> None:
    process, children = started(tmp_path)
    process.send_signal(signal.SIGINT)
    assert process.communicate() == (b"", b"interrupted\n")
    assert process.returncode == 130
    for child in children:
        wait_for_end(child)
    assert {path.name for path in tmp_path.glob("build/compare/*/*")} == {"settings.json", "state.pt"}


@pytest.mark.slow
def test_the_error_of_a_process_is_that_of_the_command() -> None:
    options = ("tiny-gpt", "bert-tiny", "--steps", "2", "--batch", "2", "--jobs", "2")
    done("compare", *options)
    for result in Path().glob("build/compare/*/result.json"):
        result.rename(result.with_name("state.pt"))
    message = refused("compare", *options)
    assert "state.pt is not a valid training state\n  Pass --force to start over." in message


def test_a_process_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    python = Path("python").absolute()
    python.write_text("#!/bin/sh\necho no such library >&2\nexit 3\n")
    python.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(python))
    message = refused("compare", "tiny-gpt", "bert-tiny", "--jobs", "2")
    assert message in {
        f"The process that trained {label} ended with status 3\n  last output: no such library\n  Run the command again to resume.\n"
        for label in ("tiny-gpt", "bert-tiny")
    }


def test_models_that_train_at_once_must_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "available_memory", lambda: 7_000_000)
    message = refused("compare", "tiny-gpt", "tiny-gpt", "bert-tiny", "--width", "64", "--jobs", "4")
    assert message == (
        "3 models that train at once must fit into memory\n  value: 8.8 MB, and 7.0 MB are free\n  Pass --jobs 2.\n"
    )


def test_torchrun_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    monkeypatch.setenv("WORLD_SIZE", "2")
    message = refused("compare", "tiny-gpt")
    assert message == (
        "zoo compare must be started once, without torchrun\n  value: 2 processes\n"
        "  Pass --jobs 2, which starts a process for each model.\n"
    )
