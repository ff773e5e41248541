"""What files and options hold is shown, never obeyed: no terminal escape is printed as such, and messages end."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from cli.options.files import write_whole
from cli.terminal.render import Column, print_json, print_table, say, say_piece
from specs.base.printable import printable
from tests.cli.process import ZOO, in_terminal
from tests.cli.program import as_json, done, invoke, refused

ESCAPE = "\x1b]0;gone\x07\x9b31m\u202e"
SHOWN = "\\x1b]0;gone\\x07\\x9b31m\\u202e"
EVIL = set("\x00\x07\x08\x0b\r\x1b\x7f\x9b\u202e\u2066")


@pytest.mark.slow
@given(st.text())
def test_printable_text_is_kept_and_the_rest_escaped(text: str) -> None:
    shown = printable(text)
    assert not EVIL & set(shown)
    shown.encode()  # and no half of a pair is left
    assert "\n" not in shown
    if text.isprintable():
        assert shown == text
    assert printable(text, keep="\n").count("\n") == text.count("\n")


def test_a_byte_of_a_name_that_is_no_utf8_is_shown_as_such() -> None:
    assert printable(b"a\xff".decode("utf-8", "surrogateescape")) == "a\\xff"


def test_everything_that_prints_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    say(ESCAPE, "red", lead=ESCAPE)
    say(ESCAPE, err=True)
    say_piece(ESCAPE)
    print_table([Column(ESCAPE)], [[ESCAPE], [[ESCAPE, "b"]]])
    shown = capsys.readouterr()
    assert not EVIL & set(
        (shown.out + shown.err).replace("\x1b[31m", "").replace("\x1b[1m", "").replace("\x1b[0m", "")
    )
    assert shown.out.count(SHOWN) == 6
    assert shown.err.count(SHOWN) == 1


def test_json_escapes_the_same_and_reads_back_equal(capsys: pytest.CaptureFixture[str]) -> None:
    data = {"name": ESCAPE, "byte": "\udcff", "word": "größe"}
    print_json(data)
    shown = capsys.readouterr().out
    assert not EVIL & set(shown)
    assert "größe" in shown
    assert json.loads(shown) == data


def test_a_field_of_a_config(tmp_path: Path) -> None:
    config = {"model_type": "bert", "$(touch gone)": 1, ESCAPE: 2}
    (tmp_path / "config.json").write_text(json.dumps(config))
    passed = invoke("import", tmp_path)
    assert not EVIL & set(passed.stderr)
    assert SHOWN in passed.stderr
    message = refused("import", tmp_path, "--strict")
    assert not EVIL & set(message)
    assert SHOWN in message
    options = shlex.split(message.rpartition(" pass ")[2])
    assert options[:2] == ["--ignore", "$(touch gone)"]


def test_thousands_of_unknown_fields(tmp_path: Path) -> None:
    config = {"model_type": "bert", **{f"field_{number}": number for number in range(5000)}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert len(invoke("import", tmp_path).stderr) < 2000
    message = refused("import", tmp_path, "--strict")
    assert "  field_9: 9\n  ... and 4,990 more\n" in message
    assert len(message) < 2000


@pytest.mark.slow
def test_thousands_of_unknown_keys(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text("extends: gpt2\n" + "".join(f"field_{number}: 1\n" for number in range(500)))
    for command in ("show", "validate"):
        result = invoke(command, path)
        assert result.exit_code == 2
        assert result.stderr.endswith("... and 490 more problems\n")
        assert result.stderr.count("is not a known key") == 10
    problems = json.loads(invoke("show", path, "--json").stdout)["errors"]
    assert len(problems) == 500


def test_a_line_of_a_megabyte(capsys: pytest.CaptureFixture[str]) -> None:
    say("x" * 10**6, err=True)
    shown = capsys.readouterr().err
    assert shown.endswith("xx... and 990,000 more characters\n")
    assert len(shown) < 11_000


def test_names_of_files_and_options() -> None:
    for arguments in (
        ["show", f"{ESCAPE}.yaml"],
        ["list", ESCAPE],
        [ESCAPE],
        ["show", "gpt2", f"--{ESCAPE}"],
    ):
        result = invoke(*arguments)
        assert result.exit_code == 2
        assert not EVIL & set(result.stdout + result.stderr)


@pytest.mark.slow
def test_a_summary(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text('extends: tiny-gpt\nname: mine\nsummary: "\\e[31mred\\u202e"\n')
    out, _ = in_terminal([*ZOO, "show", "mine.yaml"], tmp_path)
    assert not (EVIL - {"\r"}) & set(out)
    assert "\\u202e" in out
    done("draw", tmp_path / "mine.yaml", "-o", tmp_path / "mine.svg")
    ElementTree.parse(tmp_path / "mine.svg")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export with a tokenizer whose tokens a terminal would obey."""
    place = tmp_path_factory.mktemp("evil")
    exported = ["export", "tiny-gpt", "--set", "decoder.layers=1", "--no-verify", "-o", place / "out"]
    done(*exported)
    names = [f"{ESCAPE}{number}" for number in range(256)]
    tokenizer = Tokenizer(models.WordLevel({name: at for at, name in enumerate(names)}, unk_token=names[0]))
    tokenizer.save(str(place / "out" / "tokenizer.json"))
    return place


def test_tokens(place: Path) -> None:
    for options in ([], ["--ids", "1", "--stop", "2"]):
        result = done("run", place / "out", "--ids", "1,2,3", *options, "--max-new-tokens", 2)
        assert not EVIL & set(result)
        assert SHOWN in result
    result = done("attend", place / "out", "--ids", "1,2,3", "--max-new-tokens", 2)
    assert not EVIL & set(result)
    assert "\\x1b]0;gone" in result


@pytest.mark.parametrize("suffix", [".svg", ".html"])
def test_tokens_in_files(place: Path, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"maps{suffix}"
    assert str(path) in "".join(done("attend", place / "out", "--ids", "1,2,3", "-o", path).split())
    text = path.read_text("utf-8")
    assert not EVIL & set(text)
    assert SHOWN in text
    if suffix == ".svg":
        ElementTree.fromstring(text)


def test_written_data_is_not_escaped(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text('extends: tiny-gpt\nname: mine\nsummary: "a\\u202eb"\n')
    shown = invoke("show", tmp_path / "mine.yaml")
    write_whole(tmp_path / "again.yaml", shown.stdout.encode())
    assert as_json("show", tmp_path / "again.yaml")["summary"] == "a\u202eb"


def test_nothing_else_writes_to_the_terminal() -> None:
    """Functions that escape stand in one module; what draws with rich is given text that was escaped."""
    direct = re.compile(r"typer\.(echo|secho)\(|(?<![\w.])print\(|sys\.std(out|err)\.write\(")
    allowed = {"render.py", "main.py", "out_of_memory.py"}
    found = {path.name for path in Path("cli").glob("*.py") if direct.search(path.read_text("utf-8"))}
    assert found <= allowed
