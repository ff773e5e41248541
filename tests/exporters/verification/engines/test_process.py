"""Protocol faults: whatever the process of an engine does, the words say it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from exporters.verification.engines.engine import RUNNERS, Engine
from exporters.verification.engines.process import EngineError, EngineProcess, kept_processes, started
from tests.thinned import one_in

START = "import json, os, sys\nsys.stdin.readline()\nprint(json.dumps({'version': '1'}), flush=True)\n"
ONE_MORE = "sys.stdin.readline()\n"


def engine(tmp_path: Path, body: str) -> Engine:
    """An engine whose runner starts, and then does what ``body`` says."""
    runner = tmp_path / "runner.py"
    runner.write_text(START + body)
    return Engine("fake", "", shows="computes", runner=runner, module="", packages=())


def failure(tmp_path: Path, body: str, seconds: float = 30.0) -> EngineError:
    with started(engine(tmp_path, body), Path(sys.executable), seconds) as process:
        with pytest.raises(EngineError) as caught:
            process.run("graph", {"x": np.zeros(3, np.float32)})
        with pytest.raises(EngineError):  # and nothing hangs
            process.run("graph", {})
    return caught.value


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (ONE_MORE + "os.abort()", "the process ended by signal SIGABRT"),
        (ONE_MORE + "sys.exit(3)", "the process ended with status 3"),
        (
            ONE_MORE + "raise MemoryError('too much')",
            "the process ended with status 1: MemoryError: too much",
        ),
        (ONE_MORE + "print('hello')", "the answer of its runner is not what the protocol says"),
        (ONE_MORE + "print('[' * 100_000)", "the answer of its runner is not what the protocol says"),
        (ONE_MORE + "print('x' * 2**21)", "the answer of its runner is not what the protocol says"),
        (ONE_MORE + "print('[1]')", "the answer of its runner is not what the protocol says"),
        (ONE_MORE + "print('{}')", "the tensors of its runner are not what the protocol says"),
    ],
)
def test_a_process_that_fails_is_named(tmp_path: Path, body: str, words: str) -> None:
    assert failure(tmp_path, body).words == words


def test_an_engine_that_does_not_answer_is_ended(tmp_path: Path) -> None:
    body = ONE_MORE + "import time; time.sleep(60)"
    assert failure(tmp_path, body, 0.5).words == "no answer within 0 s"


def test_an_engine_that_answers_unasked_is_ended(tmp_path: Path) -> None:
    body = "while True: print('{}', flush=True)"
    assert "protocol" in failure(tmp_path, body).words or "signal" in failure(tmp_path, body).words


@pytest.mark.parametrize(
    "tensor",
    [
        {"name": "y", "dtype": "<f4", "shape": [2**40], "offset": 0},
        {"name": "y", "dtype": "<f4", "shape": [-1], "offset": 0},
        {"name": "y", "dtype": "<f4", "shape": [1], "offset": -4},
        {"name": "y", "dtype": "|O", "shape": [1], "offset": 0},
        {"name": "y", "dtype": "<f4", "shape": [2], "offset": 0},
        {"name": "y", "dtype": 4, "shape": [1], "offset": 0},
        {"dtype": "<f4"},
        "y",
    ],
)
def test_tensors_stay_within_their_file(tmp_path: Path, tensor: object) -> None:
    body = (
        "request = json.loads(sys.stdin.readline())\nopen(request['answer'], 'wb').write(bytes(4))\n"
        f"print(json.dumps({{'tensors': [{tensor!r}]}}), flush=True)\nsys.stdin.readline()"
    )
    assert failure(tmp_path, body).words == "the tensors of its runner are not what the protocol says"


def test_an_interpreter_that_does_not_start_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "python"
    with pytest.raises(EngineError, match="cannot be started"), started(engine(tmp_path, ""), missing):
        pass


@one_in(3)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "int8", "uint8", "bool"])
def test_tensors_arrive_as_they_were(tmp_path: Path, dtype: str) -> None:
    runner = tmp_path / "echo.py"
    runner.write_text(
        f"import sys\nsys.path.insert(0, {str(RUNNERS)!r})\nfrom protocol import serve\n"
        "class Echo:\n    start = lambda self, options: print('noise') or {'version': '1'}\n"
        "    run = lambda self, name, feeds: feeds\nserve(Echo())\n"
    )
    echo = Engine("echo", "", shows="computes", runner=runner, module="", packages=())
    given = {
        "a": np.arange(6).reshape(2, 3).astype(dtype),
        "none": np.zeros((0, 4), dtype),
        "one": np.ones((), dtype),
    }
    with started(echo, Path(sys.executable)) as process:
        found = process.run("graph", given)
    for name, array in given.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_a_refusal_is_bounded_and_names_its_node(tmp_path: Path) -> None:
    body = ONE_MORE + "print(json.dumps({'refused': 'no' * 10_000, 'node': 'layers.0/Scan'}))"
    found = failure(tmp_path, body)
    assert (len(found.words), found.node) == (2000, "layers.0/Scan")


def test_requests_are_answered_in_turn(tmp_path: Path) -> None:
    body = "for line in sys.stdin: print(json.dumps({'said': json.loads(line)['do']}), flush=True)"
    with started(engine(tmp_path, body), Path(sys.executable)) as process:
        assert isinstance(process, EngineProcess)
        assert [process.ask(do=each)["said"] for each in "abc"] == ["a", "b", "c"]


def test_what_an_engine_lacks_and_leaves_out_is_kept(tmp_path: Path) -> None:
    body = (
        "request = json.loads(sys.stdin.readline())\n"
        "open(request['answer'], 'wb').close()\n"
        "print(json.dumps({'tensors': [], 'aside': 'attention ran elsewhere'}), flush=True)\n"
    )
    fake = engine(tmp_path, body)
    fake.runner.write_text(
        fake.runner.read_text().replace("'version': '1'", "'version': '1', 'lacks': ['float16']")
    )
    with started(fake, Path(sys.executable), 30.0) as process:
        assert process.run("graph", {}) == {}
        assert process.lacks == ("float16",)
        assert [*process.asides] == ["attention ran elsewhere"]


def test_an_engine_is_kept_over_several_files_until_it_ends(tmp_path: Path) -> None:
    fake, python = engine(tmp_path, ONE_MORE + "sys.exit(3)"), Path(sys.executable)
    with kept_processes():
        with started(fake, python) as first:
            pass
        with started(fake, python) as second:
            assert second is first
            with pytest.raises(EngineError, match="ended with status 3"):
                second.ask(do="load")
        with started(fake, python) as third:
            assert third is not first
    assert third.process.poll() is not None
    with started(fake, python) as alone:
        assert alone is not third
    assert alone.process.poll() is not None
