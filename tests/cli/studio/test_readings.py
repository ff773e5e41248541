"""Other processes of the studio read models as the first does, and the first does without them."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import torch

from cli.studio.answer import Answers, Question
from cli.studio.readings import READINGS, Readings
from specs.base.errors import UserError
from specs.language.load import load
from tests.cli.studio.conftest import text_of


@pytest.fixture(scope="module")
def readings() -> Iterator[Readings]:
    started = Readings()
    started.start().result(300)
    assert started._processes
    yield started
    for process in started._processes:
        process.kill()
        process.wait(20)


def answer(folder: Path, text: str, readings: Readings | None = None) -> dict[str, Any]:
    answers = Answers(folder)
    if readings is not None:
        answers.readings = answers._figures.readings = readings
    return dict(answers.parts(Question(text, "tiny-gpt", "", 1, None, "fp16")))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["tiny-gpt", "bert-base-chinese", "t5-small", "clip-vit-b32", "gemma3-4b", "mamba-130m"]
)
def test_answers_are_equal_with_and_without_other_processes(
    readings: Readings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    alone = answer(tmp_path, text_of(name))
    read_here = list[str]()

    def counted(reading: str, *asked: Any) -> Any:
        read_here.append(reading)
        return own[reading](*asked)

    own = dict(READINGS)
    for reading in own:
        monkeypatch.setitem(READINGS, reading, partial(counted, reading))
    monkeypatch.setattr(
        "concurrent.futures.Future.cancel", lambda _: False
    )  # all is left to the other process
    assert answer(tmp_path, text_of(name), readings) == alone
    assert read_here == []


@pytest.mark.slow
def test_an_error_of_another_process_is_raised_here(readings: Readings) -> None:
    reading = readings.begin(load("tiny-gpt"), "training", ("no dtype",))
    with pytest.raises(TypeError):  # as here
        reading.result()
    spec = load("tiny-gpt").model_copy(update={"name": "other"})

    class Local(str):
        """A value whose class no other process can import."""

    alone = readings.begin(spec.model_copy(update={"summary": Local("x")}), "sizes")
    assert alone.result() == READINGS["sizes"](spec)
    assert readings.begin(spec, "sizes").result() == READINGS["sizes"](spec)


@pytest.mark.slow
def test_processes_that_end_are_done_without(tmp_path: Path) -> None:
    started = Readings()
    started.start().result(300)
    for process in started._processes:
        process.kill()
        process.wait(20)
    assert "devices" in answer(tmp_path, text_of("tiny-gpt"), started)
    assert not started._processes


@pytest.mark.slow
def test_the_processes_end_with_the_first() -> None:
    """Whatever ends the first, their input ends with it."""
    script = """if True:
        import os
        from cli.studio.readings import Readings
        started = Readings()
        started.start().result(300)
        print(*(process.pid for process in started._processes), flush=True)
        os.kill(os.getpid(), 9)"""
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False).stdout
    left = [int(name) for name in told.split()]
    assert left
    until = time.monotonic() + 20
    while left and time.monotonic() < until:
        time.sleep(0.05)
        left = [process for process in left if is_running(process)]
    assert not left


@pytest.mark.slow
@pytest.mark.parametrize("requests", [0.5, 9])
def test_a_process_ends_with_its_input_in_the_middle_of_a_request_or_a_reading(requests: float) -> None:
    command = [sys.executable, "-m", "cli.studio.reading_process"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    request = pickle.dumps(pickle.dumps(("training", (load("mixtral-8x7b"), "bfloat16"))))
    process.stdin.write((9 * request)[: int(requests * len(request))])
    process.stdin.close()
    assert process.wait(20) == 0
    assert len(process.stdout.read()) < 1000  # not the answers of all that was asked for


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")
    return not stat.exists() or stat.read_text().rpartition(") ")[2][0] != "Z"


def test_a_reading_that_is_not_begun_is_computed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that is overtaken leaves out what nobody has begun; what is asked for nevertheless is computed."""
    readings, asked, held = Readings(), list[str](), Event()

    def ask(name: str, *args: Any) -> tuple[str, str]:
        asked.append(name)
        held.wait(60)
        return "refused", "no"

    monkeypatch.setattr(readings, "_processes", [object()])
    monkeypatch.setattr(readings, "_ask", ask)
    spec = load("tiny-gpt")
    first, second, third = (
        readings.begin(spec, *what) for what in (("costs",), ("training", (torch.float16,)), ("sizes",))
    )
    while not asked:
        time.sleep(0.001)
    second.drop()
    assert second.result() == READINGS["training"](spec, (torch.float16,))
    assert third.result() == READINGS["sizes"](spec)
    held.set()
    with pytest.raises(UserError, match="no"):
        first.result()
    assert asked == ["costs"]
