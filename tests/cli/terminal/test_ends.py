"""How ``zoo`` ends where something around it fails: encodings, closed pipes, signals, memory, plugins, tokenizers."""

from __future__ import annotations

import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models

from cli.terminal.exit_status import HUNG_UP, INTERRUPTED, READER_LEFT, TERMINATED, WRONG_INPUT
from cli.terminal.out_of_memory import is_out_of_memory
from exporters.graph.checking import InvalidGraphError
from specs.base.errors import UserError
from tests.cli.process import ZOO, environment, in_terminal, zoo
from tests.cli.program import done, invoke
from tests.thinned import one_in

SPEC = 'extends: tiny-gpt\nname: mine\nsummary: "Größe → 中文"\n'


# -------------------------------------------------------------------------------------------------------- encodings


@pytest.mark.slow
@pytest.mark.parametrize(
    "variables",
    [
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "cp1252"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_any_text_in_any_locale(tmp_path: Path, variables: dict[str, str]) -> None:
    (tmp_path / "mine.yaml").write_text(SPEC, "utf-8")
    piped = zoo("show", "mine.yaml", cwd=tmp_path, env=environment(**variables))
    assert (piped.returncode, piped.stderr) == (0, "")
    assert "Größe → 中文" in piped.stdout
    script = f'zoo() {{ {shlex.join(ZOO)} "$@"; }}; zoo show mine.yaml; zoo list gpt1; zoo show größe'
    out, err = in_terminal(["bash", "-c", script], tmp_path, NO_COLOR="1", **variables)
    assert "Traceback" not in out + err
    letters = "Größe" if "PYTHONIOENCODING" in variables else "Gr??e"
    assert f"{letters} -> ??" in out
    assert "\r\n----" in out
    assert "A model must be a preset, a file, a checkpoint or a hub repository" in err


# ------------------------------------------------------------------------------------------------- pipes and signals


@one_in(2)
@pytest.mark.parametrize("arguments", [["list"], ["--help"], ["list", "--json"], ["show", "t5-small"]])
def test_a_closed_pipe_is_not_a_failed_check(arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*ZOO, *arguments], stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (READER_LEFT, b"")


@pytest.mark.parametrize(
    ("number", "status", "message"),
    [
        (signal.SIGHUP, HUNG_UP, "hung up\n"),
        (signal.SIGINT, INTERRUPTED, "interrupted\n"),
        (signal.SIGTERM, TERMINATED, "terminated\n"),
    ],
)
def test_signals(tmp_path: Path, number: signal.Signals, status: int, message: str) -> None:
    assert status == 128 + number
    os.mkfifo(tmp_path / "started")
    code = (
        "import sys\n"
        "from cli import main\n"
        "class App:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'cli.app':\n"
        "            open('started', 'w').close()\n"
        "            import time\n"
        "            time.sleep(60)\n"
        "sys.meta_path.insert(0, App())\n"
        "main.main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True
    )
    (tmp_path / "started").open().close()
    time.sleep(0.1)
    process.send_signal(number)
    _, err = process.communicate()
    assert (process.returncode, err) == (status, message)


def test_every_status_is_documented() -> None:
    text = " ".join(done("--help").split())
    for status in (
        "0 success",
        "1 a check",
        "2 invalid input",
        "129 hangup",
        "130 inter",
        "141 broken",
        "143 term",
    ):
        assert status in text
    page = Path("docs/reference/output.md").read_text("utf-8")
    table = page.partition("## Exit status\n")[2].partition("\n## ")[0]
    assert all(f"| {status} | " in table for status in (0, 1, 2, 129, 130, 141, 143))


# ----------------------------------------------------------------------------------------------------------- memory


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (300 * 10**6, 300 * 10**6))


@pytest.mark.slow
def test_too_little_address_space_for_the_libraries() -> None:
    done = zoo("params", "tiny-gpt", preexec_fn=_limited)
    assert (done.returncode, done.stdout) == (WRONG_INPUT, "")
    first, remedy = done.stderr.splitlines()
    assert first.startswith("Out of memory: ")
    assert "ulimit -v" in remedy
    done = zoo("params", "tiny-gpt", "--json", preexec_fn=_limited)
    assert (done.returncode, done.stderr) == (WRONG_INPUT, "")
    assert json.loads(done.stdout)["errors"][0]["message"].startswith("Out of memory: ")


def test_errors_other_than_out_of_memory() -> None:
    assert not is_out_of_memory(ImportError("No module named 'torch'"))
    assert not is_out_of_memory(SystemExit("cannot allocate memory"))
    assert is_out_of_memory(ImportError("libtorch.so: failed to map segment from shared object"))


# ---------------------------------------------------------------------------------------------------- invalid graphs


def test_an_invalid_graph_is_reported_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise InvalidGraphError("model.onnx is not valid ONNX: no")

    monkeypatch.setattr("exporters.export.export", refuse)
    arguments = ["export", "tiny-gpt", "-o", str(tmp_path / "out")]
    result = invoke(*arguments, "--json")
    assert (result.exit_code, result.stderr) == (1, "")
    assert json.loads(result.stdout) == {
        "name": "tiny-gpt",
        "passed": False,
        "errors": [{"message": "model.onnx is not valid ONNX: no"}],
        "verification": None,
    }
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "model.onnx is not valid ONNX: no\nNothing was written.\n"


# -------------------------------------------------------------------------------------------------------- tokenizers


def tokenizer(path: Path, **changes: Any) -> Path:
    Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]")).save(str(path))
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return path


PANICS_LATER = {
    "post_processor": {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}],
        "special_tokens": {},
    }
}
PANICS_AT_ONCE = {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}
FAILS_LATER = {"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "[UNK]"}}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (PANICS_AT_ONCE, " is no tokenizer: Precompiled: "),
        (PANICS_LATER, ": the tokenizer fails: no entry found for key"),
        (FAILS_LATER, ": the tokenizer fails: WordLevel error: Missing [UNK]"),
    ],
)
def test_a_tokenizer_that_panics(tmp_path: Path, changes: dict[str, Any], fault: str) -> None:
    from exporters.runtime.text import find_text

    path = tokenizer(tmp_path / "tokenizer.json", **changes)

    def use() -> None:
        text = find_text(tmp_path, None, needed=True)
        assert text is not None
        text.ids(["some words"])

    with pytest.raises(UserError) as told:
        use()
    assert str(told.value).startswith(f"{path}{fault}")
    assert "or token ids with ids." in str(told.value)


# ----------------------------------------------------------------------------------------------------------- plugins


def plugin(place: Path, code: str) -> dict[str, str]:
    """An environment with a plugin that does something while it is imported."""
    (place / "zoo_loud.py").write_text(code)
    about = place / "zoo_loud-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: zoo-loud\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[zoo.components]\nloud = zoo_loud\n")
    return environment(PYTHONPATH=os.pathsep.join([str(Path.cwd()), str(place)]))


@one_in(3)
@pytest.mark.parametrize("code", ["raise SystemExit", "exit(0)", "import sys; sys.exit('bye')"])
def test_a_plugin_that_exits(tmp_path: Path, code: str) -> None:
    done = zoo("show", "tiny-gpt", env=plugin(tmp_path, code))
    assert done.returncode == 0
    assert "name: tiny-gpt" in done.stdout
    assert (
        "Warning: plugin 'loud' of zoo-loud (zoo_loud) cannot be loaded: the import exits with "
        in done.stderr
    )


def test_a_plugin_that_prints(tmp_path: Path) -> None:
    done = zoo("show", "tiny-gpt", "--json", env=plugin(tmp_path, "print('hello')"))
    assert (done.returncode, done.stderr) == (0, "hello\n")
    assert json.loads(done.stdout)["name"] == "tiny-gpt"


def test_a_signal_while_a_plugin_is_imported(tmp_path: Path) -> None:
    code = "import os, signal, time\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(5)"
    done = zoo("show", "tiny-gpt", env=plugin(tmp_path, code))
    assert (done.returncode, done.stdout, done.stderr) == (TERMINATED, "", "terminated\n")
