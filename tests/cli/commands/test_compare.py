"""``zoo compare``: what it prints and writes, what it refuses, and how it goes on after Ctrl-C."""

from __future__ import annotations

import json
import math
import re
import signal
import subprocess
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cli.terminal.curves import HEIGHT, Curve, plot
from tests.cli.process import ZOO, environment, in_terminal
from tests.cli.program import done, invoke
from tests.thinned import one_in
from tests.zoo.sabotage import windows_see_the_future

pytestmark = pytest.mark.usefixtures("empty_directory")

QUICK = ("--steps", "4", "--batch", "2", "--task-length", "3")


@pytest.mark.slow
def test_specs_and_variants_side_by_side() -> None:
    Path("mine.yaml").write_text("extends: bert-tiny\nname: something\n")
    result = done(
        "compare", "tiny-gpt", "mine.yaml", "t5-small", "tiny-gpt", "--num-layers", "2", "--width", "32", *QUICK,
        "--with", "position={kind: rope}  decoder.layers=1",
    )  # fmt: skip
    lines = result.splitlines()
    assert lines[0].startswith("reverse  length 3: say the symbols backwards ")
    assert lines[0].endswith(" 4 steps of 2, cpu")
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines[3:9]]
    assert [row[:2] for row in rows[:5]] == [
        ["A", "tiny-gpt (1)"], ["B", "mine"], ["C", "t5-small"], ["D", "tiny-gpt (2)"],
        ["E", "position={kind: rope} decoder.layers=1"],
    ]  # fmt: skip
    assert rows[0][2:5] == rows[3][2:5]
    assert rows[5] == ["chance", "2.773"]
    told = "\n".join(lines)
    assert "D equals A\n" in told
    assert "position learned → rope" in told
    assert "decoder.layers 2 → 1" in told
    plotted = told.partition("training loss, nats per token\n")[2].partition("\nNone has solved")[0]
    assert len(plotted.splitlines()) >= HEIGHT
    assert all(name in plotted for name in "ABCDE")
    assert sorted(Path("build/compare").glob("*/*.pt")) == []


@pytest.mark.slow
def test_all_as_data() -> None:
    arguments = ("compare", "tiny-gpt", "--with", "position.kind=none", "--task", "recall", *QUICK, "--json")
    data = json.loads(done(*arguments))
    assert data["task"] == {
        "name": "recall", "length": 3, "vocabulary": 16, "chance_loss": pytest.approx(math.log(8)),
    }  # fmt: skip
    assert data["settings"] == {"steps": 4, "batch": 2, "rate": 0.003, "seed": 0}
    first, second = data["results"]
    assert [each["path"] for each in second["differences"]] == ["position"]
    assert first["differences"] == []
    for each in (first, second):
        assert len(each["losses"]) == 4
        assert [score["step"] for score in each["scores"]] == [1, 2, 3, 4]
        assert each["loss"] == each["scores"][-1]["loss"]
        assert each["tokens_per_second"] == pytest.approx(each["steps_per_second"] * 2 * 12)
        assert not each["kept"]
    again = json.loads(invoke(*arguments).stdout)
    assert [each["kept"] for each in again["results"]] == [True, True]
    assert [each["losses"] for each in again["results"]] == [each["losses"] for each in data["results"]]


@pytest.mark.slow
def test_a_cheat_is_called_one(monkeypatch: pytest.MonkeyPatch) -> None:
    windows_see_the_future(monkeypatch)
    Path("text.txt").write_bytes(b"to be or not to be, " * 50)
    arguments = (
        "compare", "tiny-gpt", "--with", "decoder.block.attention.window=4", "--corpus", "text.txt", *QUICK,
    )  # fmt: skip
    result = invoke(*arguments)
    assert result.exit_code == 1
    assert result.stdout.startswith("next-byte  length 3: ")
    assert "B (decoder.block.attention.window=4) sees the future: its loss is meaningless" in result.stderr
    assert re.search(r"B +decoder.block.attention.window=4 .* sees the future\n", result.stdout)
    assert "A (tiny-gpt)" not in result.stderr
    data = invoke(*arguments, "--json")
    assert data.exit_code == 1
    assert [each["sees_answers"] for each in json.loads(data.stdout)["results"]] == [False, True]
    assert json.loads(data.stdout)["passed"] is False
    assert "2 models compared (2 from saved results, --force retrains) in " in invoke(*arguments).stdout
    assert "2 models compared in " in invoke(*arguments, "--force").stdout


@pytest.mark.slow
def test_without_braille(tmp_path: Path) -> None:
    command = [
        *ZOO, "compare", "tiny-gpt", "--with", "position.kind=rope", "--steps", "1", "--batch", "1",
        "--task-length", "1",
    ]  # fmt: skip
    told, _ = in_terminal(command, tmp_path, PYTHONIOENCODING="ascii", NO_COLOR="1")
    assert "B differs from A: position learned -> rope" in told
    plotted = told.partition("training loss")[2]
    assert plotted.isascii()
    assert "chance" in plotted


def test_divergence_is_not_hidden() -> None:
    result = invoke("compare", "tiny-gpt", "--with", "initialization.std=1e30", *QUICK)
    assert result.exit_code == 0
    assert re.search(r"B +initialization.std=1e30 +[\d,]+ +diverged", result.stdout)
    assert "B (initialization.std=1e30) diverged: its loss was not finite at step 1." in " ".join(
        result.stderr.split()
    )
    assert "1 model compared (1 from saved results" in invoke("compare", "tiny-gpt", *QUICK).stdout


@pytest.mark.slow
def test_pictures_pages_and_data(monkeypatch: pytest.MonkeyPatch) -> None:
    windows_see_the_future(monkeypatch)
    files = ["out/curves.png", "curves.svg", "curves.html", "curves.json"]
    options = [option for name in files for option in ("-o", name)]
    result = invoke(
        "compare", "tiny-gpt", "--with", "decoder.block.attention.window=4", "--task", "copy", *QUICK, *options,
    )  # fmt: skip
    assert result.exit_code == 1
    assert Path(files[0]).read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    text = "".join(ElementTree.fromstring(Path(files[1]).read_text()).itertext())
    assert "A: tiny-gpt" in text
    assert "B: decoder.block.attention.window=4" in text
    page = Path(files[2]).read_text()
    assert page.startswith("<!doctype html>")
    assert page.count('class="line line-') == 2
    assert "B (decoder.block.attention.window=4) sees the future" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    data = json.loads(Path(files[3]).read_text())
    assert [each["label"] for each in data["results"]] == ["tiny-gpt", "decoder.block.attention.window=4"]


def test_a_plot_shows_where_curves_are() -> None:
    falling = Curve("A", [(1, 4.0), (50, 2.0), (100, 0.0)])
    level = Curve("B", [(1, 2.0), (100, 2.0), (101, float("nan"))])
    for braille in (True, False):
        lines = [line.plain for line in plot([falling, level], 60, braille=braille, rule=(4.0, "chance"))]
        assert len(lines) == HEIGHT + 2
        assert max(map(len, lines)) <= 60
        assert lines[0].startswith(" chance")
        assert lines[-1].split() == ["0", "100"]
        rows = {name: [i for i, line in enumerate(lines) if name in line[9:]] for name in "AB"}
        assert rows["A"] == sorted(rows["A"])
        assert len(rows["A"]) > 2
        assert rows["B"] == [HEIGHT // 2]
    assert all(line.isascii() for line in lines)


def test_an_empty_plot_is_not_a_failure() -> None:
    assert len(plot([Curve("A", [(1, float("nan"))])], 40, braille=True)) == HEIGHT + 2


@one_in(3)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gptt2"], "A model must be a preset, a file, a checkpoint or a hub repository\n  value: 'gptt2'\n  Did you mean 'gpt2'?"),
        (["tiny-gpt", "--with", "position.kind=rop"], "must be a registered position kind\n  value: 'rop'\n  Did you mean 'rope'?"),
        (["tiny-gpt", "--with", "causal"], "an assignment must have an '=' between path and value"),
        (["tiny-gpt", "--task", "revers"], "--task 'revers' is unknown\n  Did you mean 'reverse'?"),
        (["tiny-gpt", "--task", "next-byte"], "--task next-byte needs a text\n  Pass --corpus FILE."),
        (["tiny-gpt", "--task", "copy", "--corpus", "text.txt"], "--task copy generates its own passages and takes no --corpus\n  value: 'text.txt'\n  Leave it out, or use --task next-byte or masked-byte."),
        (["tiny-gpt", "--corpus", "nowhere.txt"], "nowhere.txt cannot be read: No such file or directory.\n  Check the path."),
        (["tiny-gpt", "--corpus", "text.txt"], "text.txt: must have at least 640 bytes: a tenth is held out, and a passage has 64\n  value: 200 bytes\n  Use --task-length 20 or less, or a longer text."),
        (["tiny-gpt", "--corpus", "empty.txt"], "value: 0 bytes\n  Use a longer text."),
        (["tiny-gpt", "--corpus", "text.txt", "--task-length", "1"], "--task-length of a text must be 2 bytes or more\n  value: 1\n  Use 64."),
        (["bert-tiny", "--corpus", "text.txt", "--task-length", "8"], "bert-tiny cannot be trained on next-byte, which is for decoder and encoder-decoder models: every token of an encoder sees those after it\n  architecture: encoder\n  Use --task masked-byte, copy or reverse."),
        (["tiny-gpt", "t5-small", "--corpus", "text.txt", "--task-length", "8"], "Specs compared on next-byte must have the same architecture"),
        (["tiny-gpt", "--task-length", "100"], "tiny-gpt: reverse of --task-length 100 must fit the context of its decoder\n  value: 200 tokens, and the context has 128\n  Use --task-length 64 or less, or set context_length=200."),
        (["vit-base-16"], "vit-base-16 cannot be trained on reverse: its encoder must take tokens alone\n  embedding: patches\n"),
        (["gpt3-175b"], "gpt3-175b is too large to train here: "),
        (["tiny-gpt", "--width", "33"], "--width must be even\n  value: 33\n  Use 32 or 34."),
        (["tiny-gpt", "--lr", "0"], "--lr must be between 0 and 1000.\n  value: 0\n  Pass a rate such as 0.003."),
        (["tiny-gpt", "--lr", "nan"], "--lr must be between 0 and 1000.\n  value: nan\n"),
        (["tiny-gpt", "-o", "curves.gif"], "--output must end in .png, .svg, .html or .json.\n  value: 'curves.gif'\n  Pass a path such as curves.png."),
        (["tiny-gpt", "-o", "there.png"], "there.png is a directory, and only regular files are replaced.\n  Pass a file to --output"),
        (["tiny-gpt", "-o", "other.json"], "other.json was not written by zoo, and is not replaced."),
    ],
)  # fmt: skip
def test_incomparable_runs_are_refused(arguments: list[str], message: str) -> None:
    Path("text.txt").write_bytes(b"0123456789" * 20)
    Path("empty.txt").touch()
    Path("other.json").write_text("{}")
    Path("there.png").mkdir()
    result, data = invoke("compare", *arguments), invoke("compare", *arguments, "--json")
    assert (result.exit_code, result.stdout, data.exit_code) == (2, "", 2), result.output
    assert message in result.stderr
    errors = json.loads(data.stdout)["errors"]
    assert message in "\n".join(each["message"] for each in errors)
    assert not Path("build").exists()


def test_a_directory_that_takes_no_files_is_named() -> None:
    Path("build").symlink_to("nowhere/at/all")
    result = invoke("compare", "tiny-gpt", "--steps", "1", "--num-layers", "1", "--width", "16")
    assert result.exit_code == 2
    assert "cannot be written: File exists.\n  Choose another directory." in result.stderr


@pytest.mark.slow
def test_ctrl_c_and_again(tmp_path: Path) -> None:
    command = [*ZOO, "compare", "tiny-gpt", "--steps", "100", "--batch", "8", "--json"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while not list(tmp_path.glob("build/compare/*/state.pt")):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.communicate() == (b"", b"interrupted\n")
    assert process.returncode == 130
    assert {path.name for path in tmp_path.glob("build/compare/*/*")} == {"settings.json", "state.pt"}
    again = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, check=True)
    (result,) = json.loads(again.stdout)["results"]
    assert len(result["losses"]) == 100
