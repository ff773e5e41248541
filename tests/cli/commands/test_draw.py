"""``zoo draw``: what is written where, and what is refused."""

import json

import pytest
from typer.testing import CliRunner

from cli.app import app
from cli.options.files import ENDINGS


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs ``zoo draw`` with some arguments in an empty directory."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, ["draw", *arguments], prog_name="zoo")


def files(directory):
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


def test_a_drawing_is_an_svg_in_the_build_directory(run, tmp_path):
    result = run("tiny-gpt", "--set", "name=mine")
    assert result.exit_code == 0
    assert "\nbuild/mine.svg is drawn in " in result.stdout
    assert files(tmp_path) == ["build/mine.svg"]
    assert "<title>mine</title>" in (tmp_path / "build/mine.svg").read_text("utf-8")


def test_the_suffix_sets_the_format(run, tmp_path):
    for name in ("a.svg", "a.PNG", "a.mmd", "a.md", "deep/er/a.svg"):
        result = run("tiny-gpt", "-o", name)
        assert (result.exit_code, f"\n{name} is drawn in " in result.stdout) == (0, True)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "deep/er/a.svg").read_bytes()
    assert (tmp_path / "a.PNG").read_bytes().startswith(b"\x89PNG")
    flowchart = (tmp_path / "a.mmd").read_text("utf-8")
    assert flowchart.startswith('---\ntitle: "tiny-gpt: 224K parameters"\n')
    assert (tmp_path / "a.md").read_text("utf-8") == (
        f"```mermaid\n{flowchart.removesuffix(ENDINGS['.mmd'].decode())}```\n<!-- written by zoo -->\n"
    )


@pytest.mark.slow
def test_the_format_is_required_where_the_file_name_has_none(run, tmp_path):
    assert run("tiny-gpt", "--format", "mermaid", "-o", "-").stdout.startswith("---\ntitle:")
    assert run("tiny-gpt", "-o", "-").stdout.startswith("<svg ")
    assert run("tiny-gpt", "--format", "png", "-o", "-").stdout_bytes.startswith(b"\x89PNG")
    assert files(tmp_path) == []
    assert "\nbuild/tiny-gpt.png is drawn in " in run("tiny-gpt", "--format", "png").stdout
    assert "\npicture is drawn in " in run("tiny-gpt", "--format", "mermaid", "-o", "picture").stdout


def test_json_is_the_scene_and_writes_only_requested_files(run, tmp_path):
    data = json.loads(run("tiny-gpt", "--json").stdout)
    assert (data["title"], data["parameters"]) == ("tiny-gpt", 223616)
    assert files(tmp_path) == []
    assert json.loads(run("tiny-gpt", "--json", "-o", "a.mmd").stdout) == data
    assert files(tmp_path) == ["a.mmd"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["-o", "a.gif"],
            "a.gif has no known format.\n  Use a suffix of .svg, .png, .mmd, .md, or pass --format.\n",
        ),
        (
            ["-o", "a.png", "--format", "svg"],
            "a.png has the suffix of png, but --format is svg.\n  Drop --format, or rename the file.\n",
        ),
        (["--format", "pgn"], "--format 'pgn' is unknown\n  Did you mean 'png'?\n"),
        (
            ["-o", "there.svg"],
            "there.svg is a directory, and only regular files are replaced.\n"
            "  Pass a file to --output, such as there.svg/report.svg.\n",
        ),
        (
            ["-o", "notes/a.svg"],
            "Cannot write notes/a.svg: notes is a file.\n  Pass another --output.\n",
        ),
    ],
)
def test_an_unwritable_path_is_reported(run, tmp_path, arguments, message):
    (tmp_path / "there.svg").mkdir()
    (tmp_path / "notes").touch()
    result = run("tiny-gpt", *arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", message)
    assert files(tmp_path) == ["notes"]


def test_a_png_is_not_sent_to_a_terminal(run, monkeypatch):
    monkeypatch.setattr("cli.commands.draw.is_terminal", lambda: True)
    result = run("tiny-gpt", "--format", "png", "-o", "-")
    assert (result.exit_code, result.stdout) == (2, "")
    assert (
        result.stderr
        == "A PNG cannot be printed to a terminal.\n  Pass --output FILE, or redirect the output.\n"
    )


def test_a_scale_that_makes_too_large_a_picture_is_refused(run, tmp_path):
    result = run("gpt2", "-o", "a.png", "--scale", "16", "--set", "name=" + "n" * 200)
    assert result.exit_code == 2
    assert "pixels, more than 200,000,000" in result.stderr
    assert files(tmp_path) == []
    assert "should be greater than or equal to 0.1" in run("gpt2", "--scale", "0").stderr
