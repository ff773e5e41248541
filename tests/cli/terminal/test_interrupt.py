"""Ctrl-C and requests to terminate at any moment: a line, a status, nothing left behind, the earlier export whole."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import onnxruntime
import pytest

from specs.language.preset_files import preset_names
from tests.cli.process import ZOO, environment, in_terminal, wait_for_handlers, zoo

ENDINGS = {signal.SIGINT: (130, "interrupted\n"), signal.SIGTERM: (143, "terminated\n")}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export."""
    place = tmp_path_factory.mktemp("written") / "out"
    assert zoo("export", "tiny-gpt", "--no-verify", "-o", str(place)).returncode == 0
    return place


@pytest.fixture
def exported(written: Path, tmp_path: Path) -> Path:
    """A directory with nothing but an export."""
    place = tmp_path / "exported"
    shutil.copytree(written, place / "out")
    return place


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


def assert_loads(place: Path) -> None:
    """That the export there can be loaded."""
    onnxruntime.InferenceSession(place / "out" / "model.onnx", providers=["CPUExecutionProvider"])


def start(place: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*ZOO, *arguments], cwd=place, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_for(place: Path, pattern: str, process: subprocess.Popen[str]) -> None:
    while not _exists(place, pattern):
        assert process.poll() is None, process.communicate()
        time.sleep(0.002)


def _exists(place: Path, pattern: str) -> bool:
    try:
        return any(place.glob(pattern))
    except FileNotFoundError:  # a directory was renamed meanwhile
        return False


MOMENTS = [
    pytest.param(".out.partial-*/new-*/model.onnx.data", id="writing"),
    pytest.param(".out.partial-*/new-*/model.onnx", id="verifying"),
]


@pytest.mark.slow
@pytest.mark.parametrize("number", ENDINGS)
@pytest.mark.parametrize("moment", MOMENTS)
def test_existing_files_survive(exported: Path, moment: str, number: signal.Signals) -> None:
    before = contents(exported)
    process = start(exported, "export", "gpt2", "--set", "decoder.layers=2", "-o", "out")
    wait_for(exported, moment, process)
    process.send_signal(number)
    process.send_signal(number)  # as a wrapper does that passes on what the whole group gets
    output, errors = process.communicate()
    assert (process.returncode, errors, output) == (*ENDINGS[number], "")
    assert contents(exported) == before
    assert [path.name for path in exported.iterdir()] == ["out"]
    assert_loads(exported)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0, 0.4, 0.8, 1.5])
@pytest.mark.parametrize("number", ENDINGS)
def test_an_end_while_starting_up_or_tracing(tmp_path: Path, seconds: float, number: signal.Signals) -> None:
    process = start(tmp_path, "export", "gpt2", "-o", "deep/out")
    wait_for_handlers(process)
    time.sleep(seconds)
    process.send_signal(number)
    output, errors = process.communicate()
    assert (process.returncode, errors, output) == (*ENDINGS[number], "")
    assert not list(tmp_path.iterdir())


def test_an_end_that_a_callback_swallows_is_asked_for_again() -> None:
    code = (
        "import signal, sys, time\n"
        "from cli import main\n"
        "class Swallowing:\n"
        "    def __del__(self):\n"
        "        signal.raise_signal(signal.SIGTERM)\n"
        "class App:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'cli.app':\n"
        "            Swallowing()\n"
        "            time.sleep(120)\n"
        "sys.meta_path.insert(0, App())\n"
        "main.main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (143, "", "terminated\n")


def test_an_end_waits_while_torch_starts(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(
        "import signal\nsignal.raise_signal(signal.SIGTERM)\nprint('started')\n"  # where torch would abort
    )
    code = (
        "import sys, time\n"
        "from cli import main\n"
        "class App:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'cli.app':\n"
        f"            sys.path.insert(0, {str(tmp_path)!r})\n"
        "            import torch\n"
        "            time.sleep(120)\n"
        "sys.meta_path.insert(0, App())\n"
        "main.main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (143, "started\n", "terminated\n")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("command", ["export", "build"])
def test_an_end_at_any_moment(exported: Path, command: str, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(8):
        before = contents(exported)
        number = chance.choice(list(ENDINGS))
        process = start(exported, command, "tiny-gpt", "--set", f"name=run-{seed}", "-o", "out")
        wait_for_handlers(process)
        time.sleep(chance.uniform(0, 3 if command == "export" else 5))
        process.send_signal(number)
        _, errors = process.communicate()
        assert [path.name for path in exported.iterdir()] == ["out"]
        assert (process.returncode, errors) in (ENDINGS[number], (0, ""), (-number, "")), (
            errors
        )  # or too late
        if contents(exported) != before:  # it was in place already
            files = json.loads((exported / "out" / "export.json").read_text())["files"]
            sizes = {name: file["size"] for name, file in files.items()}
            assert {
                path.name: path.stat().st_size for path in (exported / "out").iterdir()
            }.items() >= sizes.items()
            assert_loads(exported)


@pytest.mark.slow
def test_leftovers_of_a_killed_export_are_cleared_by_the_next(exported: Path) -> None:
    before = contents(exported)
    process = start(exported, "export", "gpt2", "--set", "decoder.layers=2", "-o", "out")
    wait_for(exported, ".out.partial-*/new-*/model.onnx.data", process)
    process.kill()
    process.communicate()
    (left,) = exported.glob(".out.partial-*")
    assert {
        path: content for path, content in contents(exported).items() if path.startswith("out/")
    } == before
    assert (
        zoo("export", "tiny-gpt", "--no-verify", "-o", "out", cwd=exported, env=environment()).returncode == 0
    )
    assert not left.exists()
    assert contents(exported) == before


@pytest.mark.slow
def test_an_export_killed_between_the_renames_is_put_back(exported: Path) -> None:
    before = contents(exported)
    left = exported / ".out.partial-00000000"
    left.mkdir()
    (exported / "out").rename(left / "old")
    assert (
        zoo("export", "tiny-gpt", "--target", "no", "-o", "out", cwd=exported, env=environment()).returncode
        == 2
    )
    assert (
        zoo("export", "gpt3-175b", "--weights", "gone", "-o", "out", cwd=exported, env=environment()).returncode
        == 2
    )  # fmt: skip
    assert (
        zoo("export", "tiny-gpt", "--no-verify", "-o", "out", cwd=exported, env=environment()).returncode == 0
    )
    assert contents(exported) == before


# --------------------------------------------------------------------------------------------------- terminals


COLOR = "\x1b[3"


@pytest.mark.slow
def test_a_terminal_gets_colours_and_progress(tmp_path: Path) -> None:
    out, err = in_terminal([*ZOO, "export", "tiny-gpt", "-v"], tmp_path)
    assert f"{COLOR}2mequal" in out
    assert "verify: " in err
    assert "verify: " not in out


@pytest.mark.slow
@pytest.mark.parametrize("variable", [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_colours_where_they_are_not_wanted(tmp_path: Path, variable: tuple[str, str]) -> None:
    for arguments in (["params", "tiny-gpt", "--depth", "0"], ["show", "gptt2"]):
        out, err = in_terminal([*ZOO, *arguments], tmp_path, **dict([variable]))
        assert "expected" in out or "Did you mean" in err
        assert COLOR not in out + err


@pytest.mark.slow
def test_a_pipe_gets_neither(tmp_path: Path) -> None:
    result = zoo("export", "tiny-gpt", cwd=tmp_path, env=environment())
    assert (result.returncode, result.stderr) == (0, "")
    assert "\x1b" not in result.stdout


def test_completion_in_bash(tmp_path: Path) -> None:
    script = zoo(
        "--show-completion", "bash", cwd=tmp_path,
        env=environment(_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1"),
    )  # fmt: skip
    assert script.returncode == 0
    assert "_ZOO_COMPLETE=complete_bash" in script.stdout
    request = environment(_ZOO_COMPLETE="complete_bash", COMP_WORDS="zoo build ber", COMP_CWORD="2")
    result = subprocess.run(ZOO, cwd=tmp_path, env=request, capture_output=True, text=True, check=False)
    names = result.stdout.split()
    assert names == [name for name in preset_names() if name.startswith("ber")]
    assert {"bert-base", "bert-large"} <= set(names)
