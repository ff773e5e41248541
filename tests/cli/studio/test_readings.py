"""The second process of the studio reads models as the first does, and the first does without it."""

from __future__ import annotations

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
    process = started._process
    assert process is not None
    yield started
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
def test_answers_are_equal_with_and_without_a_second_process(
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
def test_an_error_of_the_second_process_is_raised_here(readings: Readings) -> None:
    reading = readings.begin(load("tiny-gpt"), "training", "no dtype")
    with pytest.raises(TypeError):  # as here
        reading.result()
    spec = load("tiny-gpt").model_copy(update={"name": "other"})
    assert readings.begin(spec, "sizes").result() == READINGS["sizes"](spec)


@pytest.mark.slow
def test_a_second_process_that_ends_is_done_without(tmp_path: Path) -> None:
    started = Readings()
    started.start().result(300)
    process = started._process
    assert process is not None
    process.kill()
    process.wait(20)
    assert "devices" in answer(tmp_path, text_of("tiny-gpt"), started)
    assert started._process is None


@pytest.mark.slow
def test_the_second_process_ends_with_the_first() -> None:
    started = Readings()
    started.start().result(300)
    process = started._process
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(20) == 0


def test_a_reading_that_is_not_begun_is_computed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that is overtaken leaves out what nobody has begun; what is asked for nevertheless is computed."""
    readings, asked, held = Readings(), list[str](), Event()

    def ask(name: str, *args: Any) -> tuple[str, str]:
        asked.append(name)
        held.wait(60)
        return "refused", "no"

    monkeypatch.setattr(readings, "_process", object())
    monkeypatch.setattr(readings, "_ask", ask)
    spec = load("tiny-gpt")
    first, second, third = (
        readings.begin(spec, *what) for what in (("costs",), ("training", torch.float16), ("sizes",))
    )
    while not asked:
        time.sleep(0.001)
    second.drop()
    assert second.result() == READINGS["training"](spec, torch.float16)
    assert third.result() == READINGS["sizes"](spec)
    held.set()
    with pytest.raises(UserError, match="no"):
        first.result()
    assert asked == ["costs"]
